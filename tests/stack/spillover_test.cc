// SPDX-License-Identifier: Apache-2.0
// A spillover drive under load that spills and drains all the time, through power losses.
#include <gtest/gtest.h>

#include <algorithm>

#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

uint64_t fact(const drive::Drive& drive, std::string_view name) {
  for (const drive::Fact& fact : drive.facts()) {
    if (fact.name == name) return fact.value;
  }
  return 0;
}

TEST(SpilloverLoad, LosesNothingWhileChunksSpillAndDrain) {
  uint64_t drained = 0;
  for (const uint64_t seed : sim::seeds_to_run(6)) {
    StackLoad load({.stack = "spillover(file:here,size=512K, file:there,size=2M, drain_ms=1)",
                    .requests = UINT64_MAX});
    drive::Drive* drive = nullptr;
    load.on_open = [&](drive::Drive* opened) { drive = opened; };
    Rng rng(seed);
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&load](env::Env& env) { return load.live(env); });
    uint64_t elsewhere = 0;
    for (int life = 0; life < 8 && load.failure().empty(); ++life) {
      cluster.run_for(Duration{static_cast<int64_t>(rng.below(80'000'000))});
      if (drive != nullptr) {
        drained += fact(*drive, "chunks_drained");
        elsewhere = std::max(elsewhere, fact(*drive, "chunks_elsewhere"));
      }
      drive = nullptr;
      node.crash();
      load.crashed();
      node.restart();
    }
    cluster.run_for(20_ms);
    node.stop();
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
    EXPECT_EQ(load.failure(), "") << cluster.report();
    EXPECT_GT(elsewhere, 10u);
  }
  EXPECT_GT(drained, 0u);
}

}  // namespace
}  // namespace cairn::stack
