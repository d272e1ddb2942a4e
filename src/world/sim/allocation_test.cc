// SPDX-License-Identifier: Apache-2.0
// A steady state takes nothing from the heap, event after event.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/task.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/testing.h"

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

namespace {
uint64_t allocation_count = 0;
}

void* operator new(size_t size) {
  ++allocation_count;
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cairn::sim {
namespace {

task::Task<void> tick(env::Env& env, Duration period) {
  while (true) {
    const Result<void> slept = co_await task::sleep_for(env, period, env.stop_token());
    if (!slept) co_return;
  }
}
task::Task<void> many_ticks(env::Env& env) {
  task::Gate gate;
  for (int i = 0; i < 100; ++i) gate.spawn(tick(env, Duration{50'000 + i}));
  co_await gate.close();
}

TEST(Allocation, TimersAndStreamsTakeNothingFromTheHeap) {
  EchoStats stats;
  ClusterOptions options;
  options.network.faults = {.segment = 0.2, .delay = 0.01};
  Cluster cluster(options);
  cluster.node("ticks").start(many_ticks);
  cluster.node("server").start(echo_server(7));
  cluster.node("client").start(
      echo_client(cluster.node("server").address(7), {.size = 20'000}, stats));
  cluster.run_for(200_ms);
  const uint64_t before = allocation_count;
  const uint64_t events = cluster.events_run();
  const uint64_t rounds = stats.rounds;
  cluster.run_for(50_ms);
  EXPECT_GT(cluster.events_run(), events + 50'000);
  EXPECT_GT(stats.rounds, rounds + 20);
  EXPECT_EQ(allocation_count - before, 0u);
}

}  // namespace
}  // namespace cairn::sim

#endif
