// SPDX-License-Identifier: Apache-2.0
// Services whose map is so large that a checkpoint of it takes many writes (journal.h), under
// durable writes that go on meanwhile, through power losses.
#include <gtest/gtest.h>

#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

struct Case {
  const char* name;
  const char* stack;
};

class Checkpoints : public testing::TestWithParam<Case> {};

TEST_P(Checkpoints, LoseNothingThatIsChangedMeanwhile) {
  for (const uint64_t seed : sim::seeds_to_run(3)) {
    StackLoad load({.stack = GetParam().stack,
                    .requests = 1500,
                    .is_noise = true,
                    .fills = true,
                    .durable_share = 0.8});
    Rng rng(seed);
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&load](env::Env& env) { return load.live(env); });
    for (int life = 0; life < 6 && load.failure().empty(); ++life) {
      const uint64_t target = load.done() + rng.below(1400);
      const auto is_time = [&] { return load.done() >= target || !node.is_running(); };
      ASSERT_TRUE(cluster.run_until(is_time, 1000_s)) << cluster.report();
      if (node.is_running()) {
        node.crash();
        load.crashed();
      }
      node.restart();
    }
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s));
    ASSERT_EQ(load.failure(), "") << cluster.report();
  }
}

INSTANTIATE_TEST_SUITE_P(
    LargeMaps, Checkpoints,
    testing::Values(Case{"thin", "thin(file:d0,size=6M, chunk=4K)"},
                    Case{"snapshot", "snapshot(file:d0,size=6M, chunk=4K)"},
                    Case{"compress", "compress(file:d0,size=16M)"},
                    Case{"dedup", "dedup(file:d0,size=6M)"},
                    Case{"spillover", "spillover(file:d0,size=6M, file:d1,size=4M, chunk=4K)"},
                    Case{"cache", "cache(file:d0,size=24M, file:d1,size=24M, mode=back)"}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace cairn::stack
