// SPDX-License-Identifier: Apache-2.0
#include "bench/idle.h"

#include <memory>

#include "env/env.h"
#include "task/deadline.h"
#include "task/task.h"

namespace cairn::bench {

namespace {

struct Wait {
  Duration duration;
  double share = 0;
  Result<void> outcome;
};

task::Task<void> wait_idly(env::Env& env, Wait& wait) {
  Result<std::unique_ptr<env::Listener>> listener = env.listen(env::Address::loopback(0));
  if (!listener) {
    wait.outcome = fail(listener.error());
    co_return;
  }
  const Duration before = cpu_time();
  const Time start = env.now();
  wait.outcome = co_await task::sleep_for(env, wait.duration, env.stop_token());
  const Duration used = cpu_time() - before;
  wait.share = static_cast<double>(used.ns) / static_cast<double>((env.now() - start).ns);
}

}  // namespace

Result<double> idle_share(const WorldFactory& factory, double seconds) {
  Result<std::unique_ptr<env::World>> world = factory({.cpus = {-1, -1}});
  if (!world) return fail(world.error());
  Wait wait{.duration = Duration::from_seconds(seconds)};
  const Result<void> ran = (*world)->run([&wait](env::Env& env) { return wait_idly(env, wait); });
  if (!ran) return fail(ran.error());
  if (!wait.outcome) return fail(wait.outcome.error());
  return wait.share;
}

}  // namespace cairn::bench
