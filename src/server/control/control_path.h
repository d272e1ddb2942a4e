// SPDX-License-Identifier: Apache-2.0
// Where control sockets of this user's boxes and drives are: $XDG_RUNTIME_DIR/cairn, else
// /tmp/cairn-UID.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/problem.h"

namespace cairn::server {

// The socket for a box whose first listener has this port. Makes the folder, for this user alone;
// one that others could write to, or that is not this user's, is refused.
Attempt<std::string> make_control_path(uint16_t port);

// The same for drives that this process serves.
Attempt<std::string> make_drive_control_path();

// Every control socket of this user's boxes, living or not, by name.
std::vector<std::string> control_paths();
// Likewise of those who serve drives.
std::vector<std::string> drive_control_paths();

// For paths that users give: what can be a local socket's.
Attempt<std::string> check_control_path(const std::string& path);

}  // namespace cairn::server
