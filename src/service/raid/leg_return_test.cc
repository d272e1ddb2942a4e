// SPDX-License-Identifier: Apache-2.0
// Legs of mirrors and parity that come back, and what a crash on the way costs.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stack/live_stack.h"
#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

constexpr size_t kStripe = 8;  // blocks, of which every leg has a part

// The drive is shown to the test until all ends.
task::Task<void> show(env::Env& env, std::unique_ptr<Drive> drive, const Drive*& shown) {
  shown = drive.get();
  const Result<void> ended = co_await task::sleep_for(env, 3600_s, env.stop_token());
  EXPECT_FALSE(ended);
  shown = nullptr;
  co_await drive->close();
}

// A leg fails a write and works again.
task::Task<void> lose_and_return(env::Env& env, std::string text, sim::Medium& leg,
                                 const Drive*& shown) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await until_settled(env, *drive);
  leg.fail_writes();
  co_await write_value(*drive, 0, 5, kStripe);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  leg.heal();
  co_await show(env, std::move(drive), shown);
}

// A leg fails a write, and the drive is closed before it works again.
task::Task<void> lose(env::Env& env, std::string text, sim::Medium& leg) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await until_settled(env, *drive);
  leg.fail_writes();
  co_await write_value(*drive, 0, 5, kStripe);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await drive->close();
}

task::Task<void> open_and_show(env::Env& env, std::string text, const Drive*& shown) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await show(env, std::move(drive), shown);
}

// How much is to be copied when the stack opens.
task::Task<void> open_after_crash(env::Env& env, std::string text, uint64_t& to_copy,
                                  uint64_t& regions) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  to_copy = fact(*drive, "regions_to_copy");
  regions = fact(*drive, "regions");
  co_await until_settled(env, *drive);
  const int value = co_await read_value(*drive, 0);
  EXPECT_EQ(value, 5);
  co_await drive->close();
}

class LegReturn : public testing::TestWithParam<const char*> {
 protected:
  // Crashes at each event from when the leg is back until after it is good, each in a cluster of
  // its own that `start` brings there.
  template <class Start>
  void crash_at_every_moment(Start start) {
    constexpr int kMomentsMax = 2000;
    constexpr int kMomentsMin = 20;
    int moment = 0;
    for (; moment < kMomentsMax; ++moment) {
      const Drive* shown = nullptr;  // outlives the cluster, whose end ends the one who shows
      std::string why;
      sim::Cluster cluster;
      sim::Node& node = cluster.node("host");
      run_in_sim(cluster, [&](env::Env& env) { return use(env, GetParam(), 4, why); });
      ASSERT_EQ(why, "");
      start(cluster, shown);
      int passed = 0;
      const auto is_moment = [&] {
        const bool is_back = shown != nullptr && fact(*shown, "legs_lost") == 0;
        if (!is_back && passed == 0) return false;
        ++passed;
        return passed == moment + 1;
      };
      if (!cluster.run_until(is_moment, 100_s)) {
        ASSERT_TRUE(shown != nullptr) << cluster.report();
        EXPECT_EQ(fact(*shown, "legs_lost") + fact(*shown, "legs_copying"), 0U);
        break;
      }
      node.crash();
      uint64_t to_copy = 0;
      uint64_t regions = 0;
      run_in_sim(cluster, [&](env::Env& env) {
        return open_after_crash(env, GetParam(), to_copy, regions);
      });
      ASSERT_LT(to_copy, regions / 2) << "after " << moment << " events";
    }
    EXPECT_GT(moment, kMomentsMin);
    EXPECT_LT(moment, kMomentsMax) << "it is over some time";
  }
};

// A crash between two legs' labels, for one, finds the leg good on one and stale on the other.
TEST_P(LegReturn, ACrashAtAnyMomentOfItCostsNoFullCopy) {
  crash_at_every_moment([](sim::Cluster& cluster, const Drive*& shown) {
    sim::Node& node = cluster.node("host");
    node.start(
        [&](env::Env& env) { return lose_and_return(env, GetParam(), node.disk("b"), shown); });
  });
}

TEST_P(LegReturn, NorDoesACrashWhenItIsBackAtTheStart) {
  crash_at_every_moment([](sim::Cluster& cluster, const Drive*& shown) {
    sim::Node& node = cluster.node("host");
    run_in_sim(cluster, [&](env::Env& env) { return lose(env, GetParam(), node.disk("b")); });
    node.disk("b").heal();
    node.start([&](env::Env& env) { return open_and_show(env, GetParam(), shown); });
  });
}

INSTANTIATE_TEST_SUITE_P(
    Services, LegReturn,
    testing::Values("mirror(file:a,size=1M, file:b,size=1M, retry_ms=1)",
                    "parity(file:a,size=1M, file:b,size=1M, file:c,size=1M, chunk=16K, "
                    "retry_ms=1)"),
    [](const auto& test) { return std::string(test.param).substr(0, 6); });

// Drives of which one cannot be opened until somebody says so.
class LeavesWithout final : public SourceLeaves {
 public:
  explicit LeavesWithout(std::string absent) : absent_(std::move(absent)) {}
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    if (text == absent_ && !is_there) {
      ++attempts;
      co_return std::unexpected(absent_ + " is not there yet");
    }
    Leaf leaf = co_await SourceLeaves::open(env, text);
    co_return leaf;
  }
  bool is_there = false;
  int attempts = 0;

 private:
  const std::string absent_;
};

struct LateCase {
  const char* name;
  const char* made;      // with all legs
  const char* opened;    // again, without b
  const char* verified;  // without a, so that b counts
};
constexpr LateCase kLateCases[] = {
    {"mirror", "mirror(file:a,size=1M, file:b,size=1M)",
     "mirror(file:a, file:b, degraded=yes, retry_ms=1000)",
     "mirror(file:gone, file:b, degraded=yes)"},
    {"parity", "parity(file:a,size=1M, file:b,size=1M, file:c,size=1M, chunk=16K)",
     "parity(file:a, file:b, file:c, chunk=16K, degraded=yes, retry_ms=1000)",
     "parity(file:gone, file:b, file:c, chunk=16K, degraded=yes)"},
};

task::Task<std::unique_ptr<LiveStack>> open_live(env::Env& env, std::string text, Leaves& leaves) {
  std::expected<Stack, StackError> stack = Stack::parse(text);
  LiveOpened live = co_await open_live_stack(env, *stack, leaves);
  if (live) co_return std::move(*live);
  ADD_FAILURE() << live.error().show(text);
  co_return nullptr;
}

class LateLeg : public RedundantTest, public testing::WithParamInterface<LateCase> {
 protected:
  void SetUp() override { ASSERT_EQ(use_stack(GetParam().made, 7), ""); }
};

task::Task<void> return_late(env::Env& env, std::string text) {
  LeavesWithout leaves("file:b");
  std::unique_ptr<LiveStack> drive = co_await open_live(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(fact(*drive, "legs_lost"), 1U);
  LayerInfo top = co_await drive->layers();
  EXPECT_EQ(top.below[1].problem, "file:b is not there yet");
  co_await write_value(*drive, 0, 8);
  leaves.is_there = true;
  while (fact(*drive, "legs_lost") > 0 || is_busy(*drive)) {
    const Result<void> slept = co_await task::sleep_for(env, 100_ms);
    EXPECT_TRUE(slept);
    co_await write_value(*drive, 1, 9);
  }
  top = co_await drive->layers();
  EXPECT_EQ(top.below[1].problem, "");
  EXPECT_GT(top.below[1].figures.written_bytes, 0U);
  co_await drive->close();
}

task::Task<void> expect_values(env::Env& env, std::string text) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const int first = co_await read_value(*drive, 0);
  const int second = co_await read_value(*drive, 1);
  EXPECT_EQ(first, 8);
  EXPECT_EQ(second, 9);
  co_await drive->close();
}

TEST_P(LateLeg, ReturnsWhileTheStackRuns) {
  run_in_sim(cluster_, [](env::Env& env) { return return_late(env, GetParam().opened); });
  run_in_sim(cluster_, [](env::Env& env) { return expect_values(env, GetParam().verified); });
}

task::Task<void> count_attempts(env::Env& env, std::string text, std::string service) {
  LeavesWithout leaves("file:b");
  std::unique_ptr<LiveStack> drive = co_await open_live(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(leaves.attempts, 1);
  Result<void> slept = co_await task::sleep_for(env, 100'500_ms);
  EXPECT_TRUE(slept);
  // After 1, 2, 4, 8, 16 and 32 seconds, and each 16 from there on.
  EXPECT_EQ(leaves.attempts, 1 + 10);
  const LiveStack::Told told = co_await drive->tell(service, {"retry"});
  EXPECT_EQ(told.value_or(""), "legs that are tried again: 1");
  slept = co_await task::sleep_for(env, 1_ms);
  EXPECT_EQ(leaves.attempts, 1 + 11);
  leaves.is_there = true;
  const LiveStack::Told again = co_await drive->tell(service, {"retry"});
  EXPECT_TRUE(again);
  slept = co_await task::sleep_for(env, 500_ms);
  EXPECT_EQ(fact(*drive, "legs_lost"), 0U);
  const LiveStack::Told none = co_await drive->tell(service, {"retry"});
  EXPECT_EQ(none.value_or(""), "no leg is lost");
  const LiveStack::Told odd = co_await drive->tell(service, {"sing"});
  EXPECT_FALSE(odd);
  co_await drive->close();
}

TEST_P(LateLeg, IsTriedEverMoreRarelyOrWhenTold) {
  run_in_sim(cluster_,
             [](env::Env& env) { return count_attempts(env, GetParam().opened, GetParam().name); });
}

task::Task<void> edit_while_it_is_away(env::Env& env, std::string text) {
  LeavesWithout leaves("file:b");
  std::unique_ptr<LiveStack> drive = co_await open_live(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const LiveStack::Edited edited = co_await drive->edit("priority(" + text + ")");
  EXPECT_TRUE(edited) << (edited ? "" : edited.error().text);
  leaves.is_there = true;
  const Result<void> slept = co_await task::sleep_for(env, 60_s);
  EXPECT_TRUE(slept);
  const LayerInfo top = co_await drive->layers();
  EXPECT_EQ(top.below[0].below[1].problem, "");
  co_await drive->close();
}

TEST_P(LateLeg, ReturnsAfterAnEditToo) {
  run_in_sim(cluster_, [](env::Env& env) { return edit_while_it_is_away(env, GetParam().opened); });
}

task::Task<void> meet_a_stranger(env::Env& env, std::string text, uint64_t& refused) {
  LeavesWithout leaves("file:b");
  std::unique_ptr<LiveStack> drive = co_await open_live(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  leaves.is_there = true;
  const Result<void> slept = co_await task::sleep_for(env, 60_s);
  EXPECT_TRUE(slept);
  refused = fact(*drive, "drives_refused");
  EXPECT_EQ(fact(*drive, "legs_lost"), 1U);
  co_await write_value(*drive, 0, 8);
  co_await drive->close();
}

TEST_P(LateLeg, ThatHoldsSomethingElseIsLeftAlone) {
  disk("b").poke(0, blocks_of(0x5a, 4));
  const auto before = contents("b");
  uint64_t refused = 0;
  run_in_sim(cluster_,
             [&](env::Env& env) { return meet_a_stranger(env, GetParam().opened, refused); });
  EXPECT_EQ(refused, 1U);
  EXPECT_EQ(contents("b"), before);
}

TEST_P(LateLeg, ThatHoldsSomethingBehindZeroesIsLeftAloneToo) {
  disk("b").poke(0, std::vector<std::byte>(disk("b").size()));
  disk("b").poke(700_KiB, blocks_of(0x5a, 4));
  const auto before = contents("b");
  uint64_t refused = 0;
  run_in_sim(cluster_,
             [&](env::Env& env) { return meet_a_stranger(env, GetParam().opened, refused); });
  EXPECT_EQ(refused, 1U);
  EXPECT_EQ(contents("b"), before);
}

TEST_P(LateLeg, ThatIsBlankTakesThePlaceOfTheLostOne) {
  disk("b").poke(0, std::vector<std::byte>(disk("b").size()));
  run_in_sim(cluster_, [](env::Env& env) { return return_late(env, GetParam().opened); });
  run_in_sim(cluster_, [](env::Env& env) { return expect_values(env, GetParam().verified); });
}

// Drives that are open.
class CountedLeaves final : public SourceLeaves {
 public:
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    Leaf leaf = co_await SourceLeaves::open(env, text);
    if (leaf) ++count;
    co_return leaf;
  }
  void gone(const Drive* drive) override {
    --count;
    SourceLeaves::gone(drive);
  }
  int count = 0;
};

task::Task<void> open_without_a_layer(env::Env& env, std::string text) {
  CountedLeaves leaves;
  std::unique_ptr<LiveStack> drive = co_await open_live(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const LayerInfo top = co_await drive->layers();
  EXPECT_NE(top.below[1].problem, "");
  EXPECT_EQ(leaves.count, 1);
  co_await drive->close();
  EXPECT_EQ(leaves.count, 0);
}

class LateLayer : public RedundantTest {};

TEST_F(LateLayer, HasNoneOfItsDrivesOpenUntilItComes) {
  const char* stack = "spillover(file:a,size=1M, mirror(file:b,size=1M, file:c,size=1M))";
  ASSERT_EQ(use_stack(stack, 7), "");
  disk("c").poke(0, std::vector<std::byte>(disk("c").size()));
  run_in_sim(cluster_, [&](env::Env& env) { return open_without_a_layer(env, stack); });
}

INSTANTIATE_TEST_SUITE_P(Services, LateLeg, testing::ValuesIn(kLateCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cairn::drive
