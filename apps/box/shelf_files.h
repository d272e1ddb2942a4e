// SPDX-License-Identifier: Apache-2.0
// The files that a box makes for contracts, in the folders of its shelves.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "apps/problem.h"

namespace cairn::apps {

// Nobody needs it any more. One that cannot be removed is told of at the next start.
void remove_shelf_file(const std::string& path);

// Makes the folder if it is not there, and looks for files whose names are UUIDs and not in
// `needed`: a crash left them, or the box has lost its state. Those that never held anything, and
// that nobody has open, are removed; the paths of the others are returned. The Problem says what to
// do.
Attempt<std::vector<std::string>> sweep_shelf(const std::string& folder,
                                              const std::set<std::string>& needed);

}  // namespace cairn::apps
