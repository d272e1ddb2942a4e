// SPDX-License-Identifier: Apache-2.0
// Changes as the text that is kept of them: TOML with a checksum, for people to read and edit.
//
//   # crc32c 1a2b3c4d of all below. Remove this line when you edit the file.
//   version = 4
//   [[subsystem]]
//   nqn = "nqn.2026-11.io.cairn:box"
//   removed = [2]
//   ...
//   [end]
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"
#include "server/config/changes.h"

namespace cairn::server {

inline constexpr int kChangesVersion = 4;

std::string changes_text(const ServerChanges& changes);

// Any bytes as the contents of `file`. The Problem has a line for each mistake, and the last says
// what to do; a text that was cut short or damaged is never taken for a shorter one.
Attempt<ServerChanges> parse_changes(std::string_view text, const std::string& file);

}  // namespace cairn::server
