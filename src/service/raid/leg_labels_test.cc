// SPDX-License-Identifier: Apache-2.0
// Labels of mirrors and parity through several power losses: legs that have all data stay good.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drive/filter_drive.h"
#include "service/common/label.h"
#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

constexpr size_t kStripeBlocks = 8;  // of four legs, two of them parity, with chunks of 16K

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

// While leg c is copied to, a fails, and b, the last good one, fails to take the labels that say
// so.
task::Task<void> fail_while_copying(env::Env& env, sim::Node& node, bool& is_done) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(
      env, "mirror(file:a,size=1M, file:b,size=1M, file:c,size=1M, rate=4K, retry_ms=1)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  node.disk("c").fail_writes();
  co_await write_value(*drive, 0, 7, 32);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  node.disk("c").heal();
  while (fact(*drive, "legs_copying") == 0) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
  node.disk("a").fail_writes();
  node.disk("b").fail_writes({.offset = 0, .length = 8192});
  const std::vector<std::byte> data = blocks_of(8, 1);
  for (int i = 0; i < 4; ++i) {
    const Result<void> done = co_await drive->write(Lba(100), data);
    EXPECT_FALSE(done);
  }
  EXPECT_EQ(fact(*drive, "legs_copying"), 1U);
  is_done = true;
  const Result<void> ended = co_await task::sleep_for(env, 3600_s, env.stop_token());
  EXPECT_FALSE(ended);
  co_await drive->close();
}

// A write that fails may be on the medium or not, as the seed draws. The leg that is copied to must
// not come to have labels that are two ahead of those of the only leg with all data.
TEST(MirrorLabels, OfTheLastGoodLegAreFailedWithoutHarm) {
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) {
    SCOPED_TRACE(seed);
    bool is_done = false;
    std::string why;
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&](env::Env& env) { return fail_while_copying(env, node, is_done); });
    ASSERT_TRUE(cluster.run_until([&] { return is_done; }, 100_s)) << cluster.report();
    node.crash();
    for (const char* leg : {"a", "b"}) node.disk(leg).heal();
    run_in_sim(cluster,
               [&](env::Env& env) { return use(env, "mirror(file:a, file:b, file:c)", 0, why); });
    EXPECT_EQ(why, "");
  }
}

// What the test wants of a leg.
struct LegFaults {
  bool refuses_labels = false;  // for want of buffers
  bool fails_writes = false;
};

class FaultyLeg final : public FilterDrive {
 public:
  FaultyLeg(std::unique_ptr<Drive> below, const LegFaults& faults)
      : FilterDrive(std::move(below)), faults_(faults) {}

 private:
  void start(DriveOp& op) override {
    const bool is_write = op.request.kind == Request::Kind::kWrite;
    if (is_write && faults_.fails_writes) return op.complete(fail(Errc::kIo, "a fault"));
    if (is_write && faults_.refuses_labels && op.request.lba.value() < kLabelBlocks) {
      return op.complete(fail(Errc::kLimit, "no buffers"));
    }
    pass(op);
  }
  const LegFaults& faults_;
};

class FaultyLegs final : public SourceLeaves {
 public:
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    const LegFaults& of = faults[text.substr(0, text.find(','))];
    Leaf leaf = co_await SourceLeaves::open(env, std::move(text));
    if (leaf) leaf = std::make_unique<FaultyLeg>(std::move(*leaf), of);
    co_return leaf;
  }
  std::map<std::string, LegFaults> faults;  // by the leg's text up to its options
};

// Writes that begin while a label is on some legs only: a is lost first; then b, which has that
// label already; d takes labels again only after that.
task::Task<void> lose_two_around_a_label(env::Env& env, Drive& drive, FaultyLegs& legs) {
  legs.faults["file:a"].fails_writes = true;
  legs.faults["file:d"].refuses_labels = true;
  task::Task<void> first = write_value(drive, 0, 5, kStripeBlocks);
  Result<void> slept = co_await task::sleep_for(env, 20_ms);
  EXPECT_TRUE(slept);
  EXPECT_EQ(fact(drive, "legs_lost"), 1U);
  legs.faults["file:b"].fails_writes = true;
  task::Task<void> second = write_value(drive, kStripeBlocks, 6, kStripeBlocks);
  slept = co_await task::sleep_for(env, 20_ms);
  EXPECT_TRUE(slept);
  EXPECT_EQ(fact(drive, "legs_lost"), 2U);
  legs.faults["file:d"].refuses_labels = false;
  co_await std::move(first);
  co_await std::move(second);
}

constexpr const char* kParityTwo =
    "parity(file:a,size=1M, file:b,size=1M, file:c,size=1M, file:d,size=1M, chunk=16K, parity=2, "
    "retry_ms=100)";

// A leg that is lost after it took a label which others still lack is lost from the next one on:
// that label, finished, must not say of it what it does not say of itself.
SIM_TEST(ParityLabels, LegsLostWhileALabelWaitsForBuffersComeBack) {
  FaultyLegs legs;
  std::unique_ptr<Drive> drive = co_await must_open(env, kParityTwo, legs);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await until_settled(env, *drive);
  co_await lose_two_around_a_label(env, *drive, legs);
  for (const char* leg : {"file:a", "file:b"}) legs.faults[leg].fails_writes = false;
  const Result<void> slept = co_await task::sleep_for(env, 10_s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(fact(*drive, "legs_good"), 4U);
  co_await drive->close();
}

task::Task<void> lose_two_and_close(env::Env& env) {
  FaultyLegs legs;
  std::unique_ptr<Drive> drive = co_await must_open(env, kParityTwo, legs);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await until_settled(env, *drive);
  co_await lose_two_around_a_label(env, *drive, legs);
  co_await drive->close();
}

SIM_TEST(ParityLabels, LegsLostWhileALabelWaitsForBuffersOpenAgain) {
  co_await lose_two_and_close(env);
  FaultyLegs legs;
  std::unique_ptr<Drive> drive = co_await must_open(env, kParityTwo, legs);
  CO_ASSERT_TRUE(drive != nullptr);
  const int value = co_await read_value(*drive, 0);
  EXPECT_EQ(value, 5);
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
