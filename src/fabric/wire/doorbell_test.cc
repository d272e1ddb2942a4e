// SPDX-License-Identifier: Apache-2.0
#include "fabric/wire/doorbell.h"

#include <gtest/gtest.h>

#include <optional>

#include "testing/test_env.h"

namespace cairn::fabric {
namespace {

using Mode = DoorbellOptions::Mode;

class DoorbellTest : public ::testing::Test {
 protected:
  void hang(const DoorbellOptions& options) {
    bell.emplace(cores[0], options, [](void* count) { ++*static_cast<int*>(count); }, &rings);
  }
  // A command of a read, with `others` at the target.
  bool add(size_t others, bool no_delay = false) { return bell->add(72, no_delay, others); }
  uint64_t rung_by(RingCause cause) const {
    return bell->counters().rings[static_cast<size_t>(cause)];
  }

  env::TestCores cores{1};
  std::optional<Doorbell> bell;
  int rings = 0;
};

TEST_F(DoorbellTest, OffRingsForEachMessageAlone) {
  hang({.mode = Mode::kOff});
  EXPECT_TRUE(add(100));
  EXPECT_FALSE(bell->takes_more(1, 72));
  bell->left(1, 72, true);
  EXPECT_FALSE(bell->is_rung());
  EXPECT_EQ(rung_by(RingCause::kAlone), 1u);
}

TEST_F(DoorbellTest, FixedWaitsForTheCount) {
  hang({.mode = Mode::kFixed, .count = 16});
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(add(0));
  EXPECT_TRUE(add(0));
  EXPECT_EQ(rung_by(RingCause::kCount), 1u);
  EXPECT_TRUE(bell->takes_more(15, 15 * 72));
  EXPECT_FALSE(bell->takes_more(16, 16 * 72)) << "sixteen reads leave as 1152 bytes";
}

TEST_F(DoorbellTest, FixedWaitsForTheSize) {
  hang({.mode = Mode::kFixed, .bytes = 8192});
  EXPECT_FALSE(bell->add(4168, false, 0));
  EXPECT_TRUE(bell->add(4168, false, 0));
  EXPECT_EQ(rung_by(RingCause::kBytes), 1u);
}

TEST_F(DoorbellTest, FixedWaitsNoLongerThanTheDelay) {
  hang({.mode = Mode::kFixed, .delay = 50_us});
  EXPECT_FALSE(add(0));
  cores.advance(30_us);
  EXPECT_FALSE(add(0)) << "the oldest counts";
  EXPECT_EQ(rings, 0);
  cores.advance(21_us);
  EXPECT_EQ(rings, 1);
  EXPECT_TRUE(bell->is_rung());
  EXPECT_EQ(rung_by(RingCause::kTimer), 1u);
}

TEST_F(DoorbellTest, ANoDelayMessageTakesAllThatWaitAlong) {
  hang({.mode = Mode::kFixed});
  EXPECT_FALSE(add(0));
  EXPECT_TRUE(add(0, true));
  EXPECT_TRUE(bell->is_rung());
  bell->left(1, 72, false);
  EXPECT_TRUE(bell->is_rung()) << "until all have left";
  bell->left(1, 72, true);
  EXPECT_FALSE(bell->is_rung());
  cores.advance(1_ms);
  EXPECT_EQ(rings, 0) << "and no timer is left behind";
}

TEST_F(DoorbellTest, AdaptiveNeverWaitsWhenThePeerHasLittleToDo) {
  hang({.mode = Mode::kAdaptive});
  for (size_t others = 0; others < 8; ++others) {
    EXPECT_TRUE(add(others)) << others;
    bell->left(1, 72, true);
  }
  EXPECT_EQ(rung_by(RingCause::kIdle), 8u);
}

TEST_F(DoorbellTest, AdaptiveGrowsCaravansWithWhatIsInFlight) {
  hang({.mode = Mode::kAdaptive});
  size_t waiting = 1;
  while (!add(32)) ++waiting;
  EXPECT_EQ(waiting, 5u);
  bell->left(waiting, 0, true);
  for (waiting = 1; !add(127);) ++waiting;
  EXPECT_EQ(waiting, 16u);
}

TEST_F(DoorbellTest, AdaptiveSendsTakeAlongWhatGatheredButNotMoreThanHalf) {
  hang({.mode = Mode::kAdaptive, .count = 16});
  while (!add(16)) {
  }
  EXPECT_TRUE(bell->takes_more(15, 0));
  EXPECT_FALSE(bell->takes_more(16, 0)) << "with so little in flight, a caravan";
  bell->left(3, 0, true);
  for (int i = 0; i < 60; ++i) add(20);
  EXPECT_TRUE(bell->takes_more(39, 0));
  EXPECT_FALSE(bell->takes_more(40, 0)) << "half of 80";
  for (int i = 0; i < 100; ++i) add(20);
  EXPECT_FALSE(bell->takes_more(64, 0)) << "four caravans";
}

TEST_F(DoorbellTest, AdaptiveRingsWhenThePeerRunsOutOfWork) {
  hang({.mode = Mode::kAdaptive});
  EXPECT_FALSE(add(16));
  EXPECT_FALSE(bell->reconsider(9));
  EXPECT_TRUE(bell->reconsider(7));
  EXPECT_EQ(rung_by(RingCause::kIdle), 1u);
}

TEST_F(DoorbellTest, AWithdrawnMessageDoesNotKeepItRinging) {
  hang({.mode = Mode::kFixed});
  EXPECT_FALSE(add(0));
  EXPECT_TRUE(add(0, true));
  bell->left(1, 72, true);  // the other was cancelled
  EXPECT_FALSE(bell->is_rung());
}

TEST_F(DoorbellTest, CountersTellCaravansBySize) {
  hang({.mode = Mode::kFixed});
  for (const size_t size : {1, 2, 3, 4, 16, 17, 200}) bell->left(size, size * 72, true);
  const LaneCounters& counters = bell->counters();
  EXPECT_EQ(counters.sends, 7u);
  EXPECT_EQ(counters.messages, 243u);
  EXPECT_EQ(counters.sizes, (std::array<uint64_t, LaneCounters::kSizes>{1, 1, 2, 0, 1, 1, 0, 1}));
}

}  // namespace
}  // namespace cairn::fabric
