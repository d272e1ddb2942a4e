// SPDX-License-Identifier: Apache-2.0
// Caches of every kind under random requests and power losses, and in one mode after the other.
#include "service/cache/cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

// The lives of one cache, a stack each, by turns; every other one ends in a power loss.
void live_through(uint64_t seed, std::vector<std::string> stacks) {
  StackLoad load({.stack = stacks[0]});
  Rng rng(seed);
  sim::Cluster cluster({.seed = seed});
  sim::Node& node = cluster.node("host");
  node.start([&load](env::Env& env) { return load.live(env); });
  for (size_t life = 1; life < 8 && load.failure().empty(); ++life) {
    const uint64_t target = load.done() + rng.below(300);
    const uint64_t finished = load.finished();
    const bool crashes = rng.bernoulli(0.5);
    const auto is_time = [&] { return !node.is_running() || (crashes && load.done() >= target); };
    ASSERT_TRUE(cluster.run_until(is_time, 1000_s)) << cluster.report();
    if (load.finished() == finished) {
      node.crash();
      load.crashed();
    }
    load.change_stack(stacks[life % stacks.size()]);
    node.restart();
  }
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
  EXPECT_EQ(load.failure(), "") << cluster.report();
}

TEST(CacheLoad, InMemory) {
  for (const uint64_t seed : sim::seeds_to_run(10)) {
    live_through(seed, {"cache(file:d0,size=2M, memory=256K)"});
  }
}

TEST(CacheLoad, ThroughAFastDrive) {
  for (const uint64_t seed : sim::seeds_to_run(10)) {
    live_through(seed, {"cache(file:d0,size=4M, file:d1,size=1M, mode=through)"});
  }
}

TEST(CacheLoad, BackFromAFastDrive) {
  for (const uint64_t seed : sim::seeds_to_run(10)) {
    live_through(seed, {"cache(file:d0,size=4M, file:d1,size=2M, mode=back, dirty=30, drain=yes)"});
    live_through(seed, {"cache(file:d0,size=4M, file:d1,size=1M, mode=back, dirty=90)"});
    live_through(seed, {"cache(file:d0,size=4M, file:d1,size=8M, mode=back, dirty=100)"});
  }
}

TEST(CacheLoad, OneModeAfterTheOther) {
  for (const uint64_t seed : sim::seeds_to_run(20)) {
    live_through(seed, {"cache(file:d0,size=4M, file:d1,size=2M, mode=back)",
                        "cache(file:d0,size=4M, file:d1,size=2M, mode=through)"});
  }
}

TEST(CacheLoad, TwoLevels) {
  for (const uint64_t seed : sim::seeds_to_run(5)) {
    live_through(seed, {"cache(cache(file:d0,size=4M, file:d1,size=2M, mode=back), memory=128K)"});
  }
}

}  // namespace
}  // namespace cairn::stack
