// SPDX-License-Identifier: Apache-2.0
// A server in any world, from its first drive to its last answer.
#pragma once

#include <functional>
#include <string>

#include "base/problem.h"
#include "env/env.h"
#include "server/serve/rack_member.h"
#include "server/serve/server.h"
#include "task/task.h"

namespace cairn::server {

struct ServeOptions {
  ServerOptions server;
  DoorOptions doors;
  ServerChanges changes;
  ServerHooks hooks;
  RackOptions rack;  // without shelves: it is in none
  RackHooks rack_hooks;
  // The path of the control socket. Left out: there is none.
  std::function<Attempt<std::string>()> control_path;
  // Clients can connect and, unless `control` is empty, the server can be asked there.
  std::function<void(const Server& server, const std::string& control)> ready;
};

// Serves until the world is asked to stop, then drains. The Problem says what could not be opened
// or bound, and what to do. `options` outlives the task.
task::Task<Attempt<void>> serve(env::Env& env, const ServeOptions& options);

}  // namespace cairn::server
