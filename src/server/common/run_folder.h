// SPDX-License-Identifier: Apache-2.0
// Where sockets of this user's servers are: $XDG_RUNTIME_DIR/cairn, else /tmp/cairn-UID. Anybody
// may have made a folder in /tmp before us, so one that is not this user's alone is refused.
//
// Services of the machine have theirs in /run/cairn. Nobody but root makes folders in /run, so
// commands believe what they find there, if they may look.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace cairn::server {

// The same for servers and for those who ask them.
std::string run_folder();
// Where commands look: this user's folder, unless it is refused, then that of the services.
std::vector<std::string> run_folders_to_ask();
// The socket with this name that a command asks: the first that is there, else this user's.
std::string socket_to_ask(std::string_view name);
// The Problem says what to do, or `otherwise`: "name a socket with --control PATH".
Attempt<void> check_run_folder(const std::string& folder, std::string_view otherwise);
// Makes it unless it is there.
Attempt<std::string> make_run_folder(std::string_view otherwise);

}  // namespace cairn::server
