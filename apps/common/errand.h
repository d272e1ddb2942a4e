// SPDX-License-Identifier: Apache-2.0
// An errand: something asked of another process, and the world that takes.
#pragma once

#include <functional>
#include <memory>

#include "base/problem.h"
#include "env/env.h"
#include "task/task.h"
#include "world/machine/world.h"

namespace cairn::apps {

// One errand in a world of its own; io_uring is not worth its set-up for a single question.
template <class T>
Attempt<T> run_errand(const std::function<task::Task<Attempt<T>>(env::Env&)>& errand) {
  env::WorldOptions options;
  options.handle_signals = true;
  Attempt<std::unique_ptr<env::World>> world =
      machine::make_world(config::IoChoice::kEpoll, options);
  if (!world) return std::unexpected(world.error());
  Attempt<T> outcome = refuse("nothing was asked");
  struct Run {
    static task::Task<void> once(env::Env& env,
                                 const std::function<task::Task<Attempt<T>>(env::Env&)>& errand,
                                 Attempt<T>& outcome) {
      outcome = co_await errand(env);
    }
  };
  const Result<void> ran =
      (*world)->run([&](env::Env& env) { return Run::once(env, errand, outcome); });
  if (!ran) return refuse(ran.error().text());
  return outcome;
}

}  // namespace cairn::apps
