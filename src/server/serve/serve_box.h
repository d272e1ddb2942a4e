// SPDX-License-Identifier: Apache-2.0
// Serving a flash box in any world, from its first drive to its last answer.
#pragma once

#include <functional>
#include <string>

#include "base/problem.h"
#include "env/env.h"
#include "server/serve/box.h"
#include "server/serve/box_rack.h"
#include "task/task.h"

namespace cairn::server {

struct ServeOptions {
  BoxOptions box;
  BoxChanges changes;
  BoxHooks hooks;
  RackOptions rack;  // without shelves: it is in none
  RackHooks rack_hooks;
  // The path of the control socket, given the port of the first listener. Left out: there is none.
  std::function<Attempt<std::string>(uint16_t port)> control_path;
  // Hosts can connect and, unless `control` is empty, the box can be asked there.
  std::function<void(const Box& box, const std::string& control)> ready;
};

// Serves until the world is asked to stop, then drains. The Problem says what could not be opened
// or bound, and what to do. `options` outlives the task.
task::Task<Attempt<void>> serve_box(env::Env& env, const ServeOptions& options);

}  // namespace cairn::server
