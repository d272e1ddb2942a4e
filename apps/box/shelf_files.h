// SPDX-License-Identifier: Apache-2.0
// The files that a box makes for contracts, in the folders of its shelves.
#pragma once

#include <set>
#include <string>

#include "apps/problem.h"

namespace cairn::apps {

// Nobody needs it any more. That it cannot be removed is found out by the next sweep.
void remove_shelf_file(const std::string& path);

// Makes the folder if it is not there, and removes from it the files whose names are UUIDs and not
// in `needed`: a crash left them. Other files are not touched. The Problem says what to do.
Attempt<void> sweep_shelf(const std::string& folder, const std::set<std::string>& needed);

}  // namespace cairn::apps
