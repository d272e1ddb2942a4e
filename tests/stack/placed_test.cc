// SPDX-License-Identifier: Apache-2.0
// compress and dedup with data that suits them and data that does not, through power losses: blocks
// are right, and no space is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "testing/stack/stack_load.h"
#include "testing/stack/stacks.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

struct Case {
  const char* name;
  const char* stack;
  uint64_t values;
  bool is_noise;
};

// Otherwise gtest prints all bytes, among them those between the members.
void PrintTo(const Case& one, std::ostream* out) { *out << one.stack; }

// What is used is what blocks refer to: nothing when there are only holes.
task::Task<void> check_space(env::Env& env, std::string stack) {
  drive::SourceLeaves leaves;
  auto drive = co_await drive::must_open(env, stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const uint64_t written = fact(*drive, "blocks_written");
  EXPECT_GT(written, 0U);
  EXPECT_EQ(fact(*drive, "blocks_used"), written - fact(*drive, "blocks_saved"));
  EXPECT_EQ(fact(*drive, "blocks_used") + fact(*drive, "blocks_free"),
            fact(*drive, "blocks_below"));
  const Result<void> discarded = co_await drive->discard(Lba(0), drive->geometry().blocks);
  EXPECT_TRUE(discarded);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  EXPECT_EQ(fact(*drive, "blocks_used"), 0U);
  EXPECT_EQ(fact(*drive, "blocks_free"), fact(*drive, "blocks_below"));
  co_await drive->close();
}

class Placed : public testing::TestWithParam<Case> {};

TEST_P(Placed, LosesNeitherBlocksNorSpace) {
  for (const uint64_t seed : sim::seeds_to_run(4)) {
    StackLoad load({.stack = GetParam().stack,
                    .requests = 600,
                    .values = GetParam().values,
                    .is_noise = GetParam().is_noise});
    Rng rng(seed);
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&load](env::Env& env) { return load.live(env); });
    for (int life = 0; life < 5 && load.failure().empty(); ++life) {
      const uint64_t target = load.done() + rng.below(500);
      const uint64_t finished = load.finished();
      const auto is_time = [&] { return load.done() >= target || !node.is_running(); };
      ASSERT_TRUE(cluster.run_until(is_time, 1000_s)) << cluster.report();
      if (load.finished() == finished) {
        node.crash();
        load.crashed();
      }
      node.restart();
    }
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s));
    ASSERT_EQ(load.failure(), "") << cluster.report();
    drive::run_in_sim(cluster, [](env::Env& env) { return check_space(env, GetParam().stack); });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Data, Placed,
    testing::Values(Case{"compress_noise", "compress(file:d0,size=2M)", UINT64_MAX, true},
                    Case{"compress_zstd", "compress(file:d0,size=2M, codec=zstd, level=1)",
                         UINT64_MAX, false},
                    Case{"dedup_few", "dedup(file:d0,size=2M, virtual=4M)", 20, false},
                    Case{"dedup_all_differ", "dedup(file:d0,size=2M)", UINT64_MAX, true}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace cairn::stack
