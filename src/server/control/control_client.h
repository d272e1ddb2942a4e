// SPDX-License-Identifier: Apache-2.0
// Asking a server at its control socket.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "base/units.h"
#include "env/env.h"
#include "server/control/control_format.h"
#include "task/task.h"

namespace cairn::server {

// A line and the line that answers it; `path` is the socket's. Errors as of connecting, writing and
// reading; kTimedOut.
task::Task<Result<std::string>> exchange_lines(env::Env& env, std::string path, std::string line,
                                               Duration timeout);

// One request and its answer; `path` is the socket's. The Problem is the server's own, or says that
// nobody answers there.
task::Task<Attempt<Json>> ask_server(env::Env& env, std::string path, ControlRequest request,
                                     Duration timeout);

// Which server is meant; with nothing in it any is.
struct Wanted {
  std::string nqn;    // that serves this subsystem
  std::string drive;  // and a drive of this name
};
// Of several sockets, those whose server is meant. Sockets nobody listens at any more are passed
// over. A Problem when none is left.
task::Task<Attempt<std::vector<std::string>>> find_servers(env::Env& env,
                                                           std::vector<std::string> paths,
                                                           Wanted wanted, Duration timeout);
// The same when there is just one.
task::Task<Attempt<std::string>> find_server(env::Env& env, std::vector<std::string> paths,
                                             Wanted wanted, Duration timeout);

}  // namespace cairn::server
