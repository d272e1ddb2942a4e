// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "task/timer.h"
#include "world/posix/core.h"

namespace cairn::posix {
namespace {

class Clock final : public task::Timers {
 public:
  Time now() const override { return now_; }
  void arm(task::Timer&, Time) override {}
  void disarm(task::Timer&) override {}
  void pass(Duration time) { now_ = now_ + time; }

 private:
  Time now_{};
};

TEST(RingTrace, KeepsFactsWithTheirTimeAndOrder) {
  Clock clock;
  RingTrace trace(clock, true);
  EXPECT_TRUE(trace.events().empty());
  trace.record("first", 1, 2);
  clock.pass(5_us);
  trace.record("second", 3);
  const std::vector<env::TraceEvent> events = trace.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::string(events[0].what), "first");
  EXPECT_EQ(events[0].a, 1U);
  EXPECT_EQ(events[0].b, 2U);
  EXPECT_EQ(std::string(events[1].what), "second");
  EXPECT_EQ(events[1].at - events[0].at, 5_us);
}

TEST(RingTrace, ForgetsTheOldestFirst) {
  Clock clock;
  RingTrace trace(clock, true);
  for (uint64_t i = 0; i < RingTrace::kEvents + 3; ++i) trace.record("fact", i);
  const std::vector<env::TraceEvent> events = trace.events();
  ASSERT_EQ(events.size(), RingTrace::kEvents);
  EXPECT_EQ(events.front().a, 3U);
  EXPECT_EQ(events.back().a, RingTrace::kEvents + 2);
}

TEST(RingTrace, KeepsNothingUnlessItIsAskedTo) {
  Clock clock;
  RingTrace trace(clock, false);
  trace.record("fact");
  EXPECT_FALSE(trace.enabled());
  EXPECT_TRUE(trace.events().empty());
}

}  // namespace
}  // namespace cairn::posix
