// SPDX-License-Identifier: Apache-2.0
// Legs of mirrors and parity on several drives, one of which is another when the stack opens again:
// the leg's label, on its first drive, proves nothing then.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

constexpr uint64_t kBlocks = 128;  // some on every drive

uint8_t value_at(uint64_t block) { return static_cast<uint8_t>(1 + block % 200); }

task::Task<void> until_whole(env::Env& env, const Drive& drive) {
  while (fact(drive, "legs_lost") > 0 || is_busy(drive)) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
}

task::Task<void> make(env::Env& env, std::string text) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  for (uint64_t block = 0; block < kBlocks; ++block) {
    co_await write_value(*drive, block, value_at(block));
  }
  co_await drive->close();
}

task::Task<void> expect_all(Drive& drive) {
  for (uint64_t block = 0; block < kBlocks; ++block) {
    const int value = co_await read_value(drive, block);
    EXPECT_EQ(value, value_at(block)) << "block " << block;
    if (value != value_at(block)) co_return;
  }
}

// What it opened with.
struct Start {
  uint64_t good = 0;
  uint64_t lost = 0;
};
enum class Until : uint8_t { kOpen, kWhole };

task::Task<void> check(env::Env& env, std::string text, Until until, Start& start) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  start = {.good = fact(*drive, "legs_good"), .lost = fact(*drive, "legs_lost")};
  co_await expect_all(*drive);
  if (until == Until::kWhole) co_await until_whole(env, *drive);
  co_await expect_all(*drive);
  co_await drive->close();
}

// One that fails a write, while the drive is open.
task::Task<void> lose_a_leg(env::Env& env, std::string text, sim::Medium& disk) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  disk.fail_writes();
  for (uint64_t block = 0; block < kBlocks; ++block) {
    co_await write_value(*drive, block, value_at(block));
  }
  // It is tried again all the time, and answers.
  EXPECT_EQ(fact(*drive, "legs_lost") + fact(*drive, "legs_copying"), 1U);
  co_await drive->close();
  disk.heal();
}

struct Case {
  const char* name;
  const char* legs;    // with places for the second drive of two of them, and for options
  const char* verify;  // by the first leg, without another
};
constexpr Case kCases[] = {
    {"mirror",
     "mirror(stripe(file:a,size=1M, file:{},size=1M), stripe(file:c,size=1M, file:{},size=1M), "
     "retry_ms=1{})",
     "mirror(stripe(file:a,size=1M, file:{},size=1M), file:gone, degraded=yes, retry_ms=1)"},
    {"parity",
     "parity(stripe(file:a,size=1M, file:{},size=1M), stripe(file:c,size=1M, file:{},size=1M), "
     "stripe(file:e,size=1M, file:f,size=1M), chunk=16K, retry_ms=1{})",
     "parity(stripe(file:a,size=1M, file:{},size=1M), stripe(file:c,size=1M, file:d,size=1M), "
     "file:gone, chunk=16K, degraded=yes, retry_ms=1)"},
};

class LegMedia : public RedundantTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    run_in_sim(cluster_, [](env::Env& env) { return make(env, stack("b", "d")); });
  }
  static std::string stack(const char* first, const char* second, const char* more = "") {
    return fmt::format(fmt::runtime(GetParam().legs), first, second, more);
  }
  Start check_stack(std::string text, Until until) {
    Start start;
    run_in_sim(cluster_, [&](env::Env& env) { return check(env, text, until, start); });
    return start;
  }
  // The first leg alone suffices, with those that parity needs.
  void verify(const char* first) {
    const Start start =
        check_stack(fmt::format(fmt::runtime(GetParam().verify), first), Until::kOpen);
    EXPECT_EQ(start.lost, 1U);
  }
  void copy(const std::string& from, const std::string& to) { disk(to).poke(0, contents(from)); }
};

TEST_P(LegMedia, TheSameDrivesAreGoodAtOnce) {
  EXPECT_EQ(check_stack(stack("b", "d"), Until::kOpen).lost, 0U);
}

TEST_P(LegMedia, ALegWithAnotherDriveIsFilledAnew) {
  EXPECT_EQ(check_stack(stack("x", "d"), Until::kWhole).lost, 1U);
  EXPECT_EQ(check_stack(stack("x", "d"), Until::kOpen).lost, 0U);
  verify("x");
}

TEST_P(LegMedia, ItIsNotGoodBeforeItIsFilled) {
  EXPECT_EQ(check_stack(stack("x", "d", ", rate=64K"), Until::kOpen).lost, 1U);
  EXPECT_TRUE(says(use_stack(fmt::format(fmt::runtime(GetParam().verify), "x")), "too few legs"));
  const Start again = check_stack(stack("x", "d"), Until::kWhole);
  EXPECT_EQ(again.good, check_stack(stack("x", "d"), Until::kOpen).good - 1);
  verify("x");
}

TEST_P(LegMedia, ALegThatMissedLittleAndHasAnotherDriveIsFilledAnewToo) {
  run_in_sim(cluster_, [&](env::Env& env) { return lose_a_leg(env, stack("b", "d"), disk("b")); });
  EXPECT_EQ(check_stack(stack("x", "d"), Until::kWhole).lost, 1U);
  verify("x");
}

TEST_P(LegMedia, WithoutEnoughOthersItDoesNotOpen) {
  const auto before = contents("a");
  const std::string why = use_stack(stack("x", "y"));
  EXPECT_TRUE(says(why, "drives of some are not those they were"));
  EXPECT_TRUE(says(why, "say moved=yes if you copied"));
  EXPECT_EQ(contents("a"), before);
  EXPECT_EQ(check_stack(stack("b", "d"), Until::kOpen).lost, 0U);
}

TEST_P(LegMedia, CopiesOfAllAreTakenWhenToldSoAndKnownFromThenOn) {
  EXPECT_TRUE(says(use_stack(stack("x", "y")), "moved=yes"));
  copy("b", "x");
  copy("d", "y");
  EXPECT_EQ(check_stack(stack("x", "y", ", moved=yes"), Until::kOpen).lost, 0U);
  EXPECT_EQ(check_stack(stack("x", "y"), Until::kOpen).lost, 0U);
}

INSTANTIATE_TEST_SUITE_P(Services, LegMedia, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

class LegOnOneDrive : public RedundantTest {};

// All that it held is where its label is.
TEST_F(LegOnOneDrive, MayBeCopiedToAnother) {
  run_in_sim(cluster_,
             [](env::Env& env) { return make(env, "mirror(file:a,size=1M, file:b,size=1M)"); });
  ASSERT_EQ(use_stack("concat(file:x,size=1M, file:y,size=1M)"), "");
  disk("x").poke(0, contents("a"));
  disk("y").poke(0, contents("b"));
  Start start;
  run_in_sim(cluster_, [&](env::Env& env) {
    return check(env, "mirror(file:x, file:y)", Until::kOpen, start);
  });
  EXPECT_EQ(start.lost, 0U);
}

// It holds nothing that is nowhere else, and the cache knows that.
TEST_F(LegOnOneDrive, IsTheSameWithAnotherFastDriveOfItsCache) {
  const auto stack = [](const char* first, const char* second) {
    return fmt::format(
        "mirror(cache(file:a,size=2M, file:{},size=1M), cache(file:b,size=2M, file:{},size=1M))",
        first, second);
  };
  run_in_sim(cluster_, [&](env::Env& env) { return make(env, stack("f", "g")); });
  Start start;
  run_in_sim(cluster_,
             [&](env::Env& env) { return check(env, stack("x", "y"), Until::kOpen, start); });
  EXPECT_EQ(start.lost, 0U);
}

}  // namespace
}  // namespace cairn::drive
