// SPDX-License-Identifier: Apache-2.0
#include "world/posix/governor.h"

#include <gtest/gtest.h>

namespace cairn::posix {
namespace {

// A core under a load of `rate` requests a second, each of 72 bytes; what a second of it costs.
struct Load {
  double rate = 0;
  double wakes_plain = 0;
  double wakes_gathering = 0;
  double cpu_plain = 0;
  double cpu_gathering = 0;
  double rate_gathering = 0;
};

// Pays: half the processor time for the same requests.
constexpr Load kPaced = {50'000, 60'000, 30'000, 0.6, 0.35, 50'000};
// A closed loop: gathering only makes it wait.
constexpr Load kClosed = {40'000, 80'000, 25'000, 0.7, 0.3, 22'000};
// Gathers nothing that was not gathered before.
constexpr Load kBusy = {300'000, 30'000, 29'000, 0.95, 0.93, 300'000};
constexpr Load kQuiet = {100, 300, 300, 0.01, 0.01, 100};

class Core {
 public:
  Governor governor{true};

  void run(const Load& load, Duration time) {
    const Time end = now_ + time;
    while (now_ < end) {
      const bool gathers = governor.gathers();
      const double wakes = gathers ? load.wakes_gathering : load.wakes_plain;
      const double step = 1 / wakes;
      now_ = now_ + Duration(static_cast<int64_t>(step * 1e9));
      cpu_ += step * (gathers ? load.cpu_gathering : load.cpu_plain);
      requests_ += step * (gathers ? load.rate_gathering : load.rate);
      if (gathers) gathered_ += step;
      if (!governor.woke(now_)) continue;
      governor.end_window(now_, {.cpu = Duration(static_cast<int64_t>(cpu_ * 1e9)),
                                 .received = static_cast<uint64_t>(requests_ * 72)});
    }
  }
  // Seconds spent gathering since the last call.
  double gathered() { return std::exchange(gathered_, 0); }

 private:
  Time now_{Duration(1_s).ns};
  double cpu_ = 0;
  double requests_ = 0;
  double gathered_ = 0;
};

TEST(Governor, GathersUnderASteadyLoad) {
  Core core;
  core.run(kPaced, 200_ms);
  EXPECT_TRUE(core.governor.gathers());
  core.gathered();
  core.run(kPaced, 60_s);
  EXPECT_GT(core.gathered(), 59.0) << "it looks again, and seldom";
}

TEST(Governor, LeavesAClosedLoopAlone) {
  Core core;
  core.run(kClosed, 60_s);
  EXPECT_FALSE(core.governor.gathers());
  EXPECT_LT(core.gathered(), 0.5) << "it tries seldom";
  EXPECT_GE(core.gathered(), 0.0);
}

TEST(Governor, LeavesACoreAloneThatGainsNothing) {
  Core core;
  core.run(kBusy, 10_s);
  EXPECT_FALSE(core.governor.gathers());
}

TEST(Governor, NeverTriesACoreThatIsWokenSeldom) {
  Core core;
  core.run(kQuiet, 10_s);
  EXPECT_EQ(core.gathered(), 0);
}

TEST(Governor, StopsWhenTheLoadGoes) {
  Core core;
  core.run(kPaced, 1_s);
  ASSERT_TRUE(core.governor.gathers());
  core.run(kQuiet, 200_ms);
  EXPECT_FALSE(core.governor.gathers());
  core.run(kPaced, 200_ms);
  EXPECT_TRUE(core.governor.gathers()) << "the next load is tried without a pause";
}

TEST(Governor, NoticesThatTheLoadHasBecomeAClosedLoop) {
  Core core;
  core.run(kPaced, 1_s);
  ASSERT_TRUE(core.governor.gathers());
  core.run(kClosed, 30_s);
  EXPECT_FALSE(core.governor.gathers());
}

TEST(Governor, OffNeverGathers) {
  Governor governor(false);
  uint64_t received = 0;
  for (int64_t us = 0; us < 10'000'000; us += 20) {
    const Time now{us * 1000};
    if (!governor.woke(now)) continue;
    governor.end_window(now, {.cpu = Duration(us * 500), .received = received += 1'000'000});
    EXPECT_FALSE(governor.gathers());
  }
}

}  // namespace
}  // namespace cairn::posix
