// SPDX-License-Identifier: Apache-2.0
// The files that a box makes for contracts, in the folders of its shelves.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/problem.h"

namespace cairn::server {

// Durable when it is done; one that is not there is no error. The Problem says why it is still
// there.
Attempt<void> remove_shelf_file(const std::string& path);

// A file that nobody knows, and what it takes of the disk.
struct StrayFile {
  std::string path;
  uint64_t bytes = 0;
  friend bool operator==(const StrayFile&, const StrayFile&) = default;
};

// Makes the folder if it is not there, and looks for files whose names are UUIDs and not in
// `needed`: a crash left them, or the box has lost its state. Those that never held anything, and
// that nobody has open, are removed; the others are returned. The Problem says what to do.
Attempt<std::vector<StrayFile>> sweep_shelf(const std::string& folder,
                                            const std::set<std::string>& needed);

}  // namespace cairn::server
