// SPDX-License-Identifier: Apache-2.0
#include "task/timer.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "testing/test_core.h"

namespace cairn::task {
namespace {

struct Recorder : Timer {
  Recorder(TestCore& owner, std::vector<Recorder*>& log)
      : Timer(&on_time), core(owner), fired(log) {}
  static void on_time(Timer& timer) {
    auto& self = static_cast<Recorder&>(timer);
    self.at = self.core.now();
    self.fired.push_back(&self);
  }
  TestCore& core;
  std::vector<Recorder*>& fired;
  Time at;
  Time wanted;
};

TEST(TimerWheel, FiresInOrderNeverEarlyLessThanATickLate) {
  TestCore core;
  Rng rng(11);
  std::vector<Recorder*> fired;
  std::vector<std::unique_ptr<Recorder>> timers;
  for (int i = 0; i < 5000; ++i) {
    timers.push_back(std::make_unique<Recorder>(core, fired));
    // From nanoseconds to hours: every level of the wheel.
    timers.back()->wanted =
        core.now() + Duration{static_cast<int64_t>(rng.below(uint64_t{1} << rng.between(1, 43)))};
    core.arm(*timers.back(), timers.back()->wanted);
    if (i % 10 == 0) core.advance(Duration{static_cast<int64_t>(rng.below(1'000'000))});
  }
  core.advance(10'000_s);
  ASSERT_EQ(fired.size(), timers.size());
  for (const auto& timer : timers) {
    EXPECT_GE(timer->at, timer->wanted);
    EXPECT_LE((timer->at - timer->wanted).ns, 2048) << "one tick, and one for a time already past";
  }
  for (size_t i = 1; i < fired.size(); ++i) EXPECT_LE(fired[i - 1]->at, fired[i]->at);
}

TEST(TimerWheel, DisarmedTimersStaySilent) {
  TestCore core;
  Rng rng(12);
  std::vector<Recorder*> fired;
  std::vector<std::unique_ptr<Recorder>> timers;
  size_t expected = 0;
  for (int i = 0; i < 2000; ++i) {
    timers.push_back(std::make_unique<Recorder>(core, fired));
    core.arm(*timers.back(), core.now() + Duration{static_cast<int64_t>(rng.below(1'000'000'000))});
  }
  for (auto& timer : timers) {
    switch (rng.below(3)) {
      case 0:
        core.disarm(*timer);
        break;
      case 1:
        timer.reset();
        break;
      default:
        ++expected;
    }
  }
  core.advance(2_s);
  EXPECT_EQ(fired.size(), expected);
}

TEST(TimerWheel, SameTimeFiresInArmingOrder) {
  TestCore core;
  std::vector<Recorder*> fired;
  std::vector<std::unique_ptr<Recorder>> timers;
  for (int i = 0; i < 100; ++i) {
    timers.push_back(std::make_unique<Recorder>(core, fired));
    core.arm(*timers.back(), Time{123'456'789});
  }
  core.advance(1_s);
  for (size_t i = 0; i < timers.size(); ++i) EXPECT_EQ(fired[i], timers[i].get());
}

struct Periodic : Timer {
  explicit Periodic(TestCore& owner) : Timer(&on_time), core(owner) {}
  static void on_time(Timer& timer) {
    auto& self = static_cast<Periodic&>(timer);
    if (++self.times < 1000) self.core.arm(self, self.core.now() + 100_us);
  }
  TestCore& core;
  int times = 0;
};

TEST(TimerWheel, MayBeArmedAgainWhileFiring) {
  TestCore core;
  Periodic periodic(core);
  core.arm(periodic, core.now());
  core.advance(1_s);
  EXPECT_EQ(periodic.times, 1000);
}

TEST(TimerWheel, NeverIsFarAway) {
  TestCore core;
  std::vector<Recorder*> fired;
  Recorder timer(core, fired);
  core.arm(timer, Time::never());
  core.advance(1'000'000_s);
  EXPECT_TRUE(fired.empty());
}

}  // namespace
}  // namespace cairn::task
