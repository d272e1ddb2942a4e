// SPDX-License-Identifier: Apache-2.0
// Every service over every service, from the table: random requests against a model of the blocks,
// with power losses, and with a stack that reopens by itself after each.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <vector>

#include "stack/services.h"
#include "testing/stack/files.h"
#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

std::string pair_of(const drive::Service& above, const drive::Service& below) {
  int files = 0;
  const auto leaf = [&] { return drive::testing_leaf(below, fmt::format("d{}", files++)); };
  return drive::example_over(above, [&] { return drive::example_over(below, leaf); });
}

struct Pair {
  const drive::Service* above;
  const drive::Service* below;
};

void PrintTo(const Pair& pair, std::ostream* out) {
  *out << pair.above->name << " over " << pair.below->name;
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (const drive::Service* above : drive::services()) {
    if (!above->leaf_only.empty()) continue;
    for (const drive::Service* below : drive::services()) pairs.push_back({above, below});
  }
  return pairs;
}

class EveryPair : public testing::TestWithParam<Pair> {};

TEST_P(EveryPair, KeepsItsBlocksThroughPowerLosses) {
  for (const uint64_t seed : sim::seeds_to_run(3)) {
    StackLoad load({.stack = pair_of(*GetParam().above, *GetParam().below)});
    Rng rng(seed);
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&load](env::Env& env) { return load.live(env); });
    for (int life = 0; life < 4 && load.failure().empty(); ++life) {
      const uint64_t target = load.done() + rng.below(300);
      const uint64_t finished = load.finished();
      const auto is_time = [&] { return load.done() >= target || !node.is_running(); };
      ASSERT_TRUE(cluster.run_until(is_time, 1000_s)) << cluster.report();
      if (load.finished() == finished) {
        node.crash();
        load.crashed();
      }
      node.restart();
    }
    const auto has_ended = [&] { return !node.is_running(); };
    ASSERT_TRUE(cluster.run_until(has_ended, 1000_s)) << cluster.report();
    EXPECT_EQ(load.failure(), "") << cluster.report();
  }
}

INSTANTIATE_TEST_SUITE_P(Services, EveryPair, testing::ValuesIn(all_pairs()),
                         [](const testing::TestParamInfo<Pair>& info) {
                           return fmt::format("{}_over_{}", info.param.above->name,
                                              info.param.below->name);
                         });

}  // namespace
}  // namespace cairn::stack
