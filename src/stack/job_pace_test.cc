// SPDX-License-Identifier: Apache-2.0
#include "stack/job_pace.h"

#include <gtest/gtest.h>

namespace cairn::drive {
namespace {

TEST(JobPace, SaysHowLongTheRestTakes) {
  const Time start{};
  JobPace pace(start, 100);
  EXPECT_FALSE(pace.time_for(50)) << "it is new";
  pace.look(120, start + 2_s);
  EXPECT_EQ(pace.time_for(50), 5_s);
  EXPECT_EQ(pace.time_for(0), Duration{});
}

TEST(JobPace, IsTheSameHoweverOftenItIsLookedAt) {
  const Time start{};
  JobPace pace(start, 0);
  pace.look(1000, start + 1_ms);
  EXPECT_FALSE(pace.time_for(1)) << "one look is no rate";
  pace.look(1000, start + 1_s);
  EXPECT_EQ(pace.time_for(1000), 1_s);
}

TEST(JobPace, ForgetsSlowlyWhatWasBefore) {
  const Time start{};
  JobPace pace(start, 0);
  pace.look(100, start + 1_s);
  pace.look(100, start + 2_s);
  EXPECT_EQ(pace.time_for(70), 1_s) << "70% of the rate before";
}

TEST(JobPace, BeginsAgainWhenLessIsDone) {
  const Time start{};
  JobPace pace(start, 0);
  pace.look(100, start + 1_s);
  pace.look(10, start + 2_s);
  EXPECT_FALSE(pace.time_for(100));
}

TEST(JobPace, SaysNothingOfWhatStandsStill) {
  const Time start{};
  JobPace pace(start, 0);
  pace.look(1, start + 1_s);
  for (int i = 2; i < 100; ++i) pace.look(1, start + Duration{i * 1'000'000'000LL});
  EXPECT_FALSE(pace.time_for(1));
}

}  // namespace
}  // namespace cairn::drive
