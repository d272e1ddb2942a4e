// SPDX-License-Identifier: Apache-2.0
// Where control sockets of this user's servers are: $XDG_RUNTIME_DIR/cairn, else /tmp/cairn-UID.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace cairn::server {

// The socket of this process; `kind` is what it does, "server", "arbiter", "kv" or
// "rack". Makes the
// folder, for this user alone; one that others could write to, or that is not this user's, is
// refused.
Attempt<std::string> make_control_path(std::string_view kind = "server");

// Every control socket of this user's servers and of the services, living or not, by name.
std::vector<std::string> control_paths();
// And of all processes, whatever they do: where they are asked for events.
std::vector<std::string> all_control_paths();

// For paths that users give: what can be a local socket's.
Attempt<std::string> check_control_path(const std::string& path);

}  // namespace cairn::server
