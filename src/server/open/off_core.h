// SPDX-License-Identifier: Apache-2.0
// off_core: a call that blocks, of a library or of the system, while its core goes on.
#pragma once

#include <type_traits>
#include <utility>

#include "env/env.h"
#include "task/task.h"
#include "world/posix/core.h"
#include "world/posix/worker.h"

namespace cairn::server {

// Runs `function()` on a thread of its own, and returns its value here; in a simulation, where no
// time passes meanwhile, it runs at once. It cannot be stopped: whoever ends the world waits for
// it. What it touches the core leaves alone until it is done.
template <class F>
task::Task<std::invoke_result_t<F&>> off_core(env::Env& env, F function) {
  auto* const core = dynamic_cast<posix::CoreEnv*>(&env);
  if (core == nullptr) co_return function();
  posix::Worker worker(*core);
  std::invoke_result_t<F&> value = co_await worker.run(std::move(function));
  co_return value;
}

}  // namespace cairn::server
