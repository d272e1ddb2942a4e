// SPDX-License-Identifier: Apache-2.0
// Asking a box at its control socket.
#pragma once

#include <string>
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
// Whether such an error says that nobody listens there, or that who did is just ending.
bool is_gone(const Error& error);

// One request and its answer; `path` is the socket's. The Problem is the box's own, or says that
// nobody answers there.
task::Task<Attempt<Json>> ask_box(env::Env& env, std::string path, ControlRequest request,
                                  Duration timeout);

// Of several sockets, those whose box serves `nqn`, or with an empty name all that answer. Sockets
// nobody listens at any more are passed over. A Problem when none is left.
task::Task<Attempt<std::vector<std::string>>> find_boxes(env::Env& env,
                                                         std::vector<std::string> paths,
                                                         std::string nqn, Duration timeout);
// The same when there is just one.
task::Task<Attempt<std::string>> find_box(env::Env& env, std::vector<std::string> paths,
                                          std::string nqn, Duration timeout);

}  // namespace cairn::server
