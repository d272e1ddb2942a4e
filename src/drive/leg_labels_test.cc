// SPDX-License-Identifier: Apache-2.0
// Labels of mirrors and parity through several power losses: legs that have all data stay good.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "drive/redundant_testing.h"

namespace cairn::drive {
namespace {

struct LabelCase {
  const char* name;
  const char* text;
  uint64_t legs;
};
constexpr LabelCase kLabelCases[] = {
    {"mirror", "mirror(file:a,size=1M, file:b,size=1M, file:c,size=1M)", 3},
    {"parity", "parity(file:a,size=1M, file:b,size=1M, file:c,size=1M, chunk=16K)", 3},
    {"parity2",
     "parity(file:a,size=1M, file:b,size=1M, file:c,size=1M, file:d,size=1M, chunk=16K, parity=2)",
     4},
};

// How many legs have all data as soon as the stack is open, and what its first block holds.
task::Task<void> count_good(env::Env& env, std::string text, uint64_t& good, int& value) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  good = fact(*drive, "legs_good");
  value = co_await read_value(*drive, 0);
  co_await drive->close();
}

// Until power fails, or to the end.
task::Task<void> open_only(env::Env& env, std::string text) {
  SourceLeaves leaves;
  Opened drive = co_await open_stack(env, text, leaves);
  if (drive) co_await (*drive)->close();
}

class LegLabels : public RedundantTest, public testing::WithParamInterface<LabelCase> {
 protected:
  static std::string text() { return GetParam().text; }
  std::vector<std::byte> labels_of(const std::string& path) {
    std::vector<std::byte> blocks(size_t{2} * 4096);
    disk(path).peek(0, blocks);
    return blocks;
  }
  // Power fails when leg a has the next label, and others do not yet.
  void lose_power_between_labels() {
    const auto a = labels_of("a");
    sim::Node& node = cluster_.node("host");
    node.start([](env::Env& env) { return open_only(env, text()); });
    EXPECT_TRUE(cluster_.run_until([&] { return labels_of("a") != a; }, 10_s));
    node.crash();
    EXPECT_TRUE(labels_of("a") != a) << "it is durable";
  }
  static void expect_all_good(sim::Cluster& cluster, int expected_value) {
    uint64_t good = 0;
    int value = -1;
    run_in_sim(cluster, [&](env::Env& env) { return count_good(env, text(), good, value); });
    EXPECT_EQ(good, GetParam().legs);
    EXPECT_EQ(value, expected_value);
  }
};

// Each life writes the label after the newest that it finds. A leg that lacks that one must not
// come to lack two, which would be one too many to believe it.
TEST_P(LegLabels, PowerLossesBetweenTheLabelsOfTwoLivesLeaveAllLegsGood) {
  ASSERT_EQ(use_stack(text(), 7), "");
  const auto c = labels_of("c");
  lose_power_between_labels();
  ASSERT_TRUE(labels_of("c") == c);
  for (int life = 1; life < 4; ++life) lose_power_between_labels();
  expect_all_good(cluster_, 7);
}

// The same wherever power fails in three lives in a row, of legs that have data and of blank ones.
TEST_P(LegLabels, NorDoPowerLossesAtAnyMomentOfThreeLives) {
  for (const bool is_made : {false, true}) {
    bool opens_before = false;
    for (int moment = 1; !opens_before; ++moment) {
      SCOPED_TRACE(moment);
      sim::Cluster cluster;
      sim::Node& node = cluster.node("host");
      std::string why;
      if (is_made) run_in_sim(cluster, [&](env::Env& env) { return use(env, text(), 7, why); });
      ASSERT_EQ(why, "");
      for (int life = 0; life < 3; ++life) {
        int passed = 0;
        node.start([](env::Env& env) { return open_only(env, text()); });
        const auto is_moment = [&] { return ++passed == moment || !node.is_running(); };
        ASSERT_TRUE(cluster.run_until(is_moment, 10_s));
        if (node.is_running()) {
          node.crash();
        } else {
          opens_before = true;
        }
      }
      expect_all_good(cluster, is_made ? 7 : 0);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Services, LegLabels, testing::ValuesIn(kLabelCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cairn::drive
