// SPDX-License-Identifier: Apache-2.0
#include "view/drive_estimate.h"

#include <gtest/gtest.h>

namespace cairn::view {
namespace {

constexpr uint64_t kRateMax = 1'000'000'000;
constexpr DriveProfile kProfile{.bytes_per_s = kRateMax};

void repeat(DriveEstimate& drive, int times, const DriveEstimate::Sample& sample) {
  for (int i = 0; i < times; ++i) drive.update(sample);
}

TEST(DriveEstimate, AnIdleDriveHasAllItsHeadroom) {
  DriveEstimate drive(kProfile);
  repeat(drive, 3, {});
  EXPECT_EQ(drive.view().headroom, kRateMax);
  EXPECT_EQ(drive.view().busy, 0);
  EXPECT_FALSE(drive.view().is_congested);
}

TEST(DriveEstimate, WithQuickRequestsTheHeadroomIsWhatIsNotUsed) {
  DriveEstimate drive(kProfile);
  repeat(drive, 5, {.read_bytes_per_s = 300'000'000, .read_delay = 90_us, .write_delay = {}});
  EXPECT_EQ(drive.view().headroom, kRateMax - 300'000'000);
  EXPECT_EQ(drive.view().busy, 300);
}

TEST(DriveEstimate, DelaysBeyondTheUpperThresholdTakeTheHeadroomAway) {
  DriveEstimate drive(kProfile);
  repeat(drive, 5, {.read_bytes_per_s = 300'000'000, .read_delay = 5_ms, .write_delay = {}});
  EXPECT_EQ(drive.view().headroom, 0u);
  EXPECT_EQ(drive.view().busy, 1000);
  EXPECT_TRUE(drive.view().is_congested);
  // What it does is what it can do, less a little for the queue to become shorter.
  EXPECT_GE(drive.view().rate, 225'000'000u);
  EXPECT_LT(drive.view().rate, 300'000'000u);
}

TEST(DriveEstimate, ADriveThatIsQuickAgainGetsItsRateBackInSteps) {
  DriveEstimate drive(kProfile);
  repeat(drive, 5, {.read_bytes_per_s = 300'000'000, .read_delay = 5_ms, .write_delay = {}});
  const uint64_t low = drive.view().rate;
  // Where what was too much is asked for again, by small ones.
  DriveEstimate used = drive;
  repeat(used, 16, {.read_bytes_per_s = low, .read_delay = 90_us, .write_delay = {}});
  EXPECT_LT(used.view().rate, low + (kRateMax / 16));
  repeat(used, 80, {.read_bytes_per_s = kRateMax / 2, .read_delay = 90_us, .write_delay = {}});
  EXPECT_EQ(used.view().rate, kRateMax);
  repeat(drive, 30, {.read_bytes_per_s = 100'000'000, .read_delay = 90_us, .write_delay = {}});
  EXPECT_GT(drive.view().rate, low + (kRateMax / 8));
  repeat(drive, 10, {});
  EXPECT_EQ(drive.view().rate, kRateMax);
}

TEST(DriveEstimate, BetweenTheThresholdsTheThresholdComesDownUntilARiseIsSeen) {
  DriveEstimate drive(kProfile);
  const DriveEstimate::Sample steady{
      .read_bytes_per_s = kRateMax / 2, .read_delay = 400_us, .write_delay = {}};
  repeat(drive, 10, steady);
  EXPECT_EQ(drive.view().rate, kRateMax);
  // The same rise at once would be below the upper threshold; here it is above the moving one.
  DriveEstimate::Sample slower = steady;
  slower.read_delay = 800_us;
  repeat(drive, 2, slower);
  EXPECT_LT(drive.view().rate, kRateMax);
}

TEST(DriveEstimate, SlowWritesHalveTheWayToTheHighestCostAndQuickOnesStepDown) {
  DriveEstimate drive(kProfile);
  const DriveEstimate::Sample slow{
      .write_bytes_per_s = 50'000'000, .read_delay = {}, .write_delay = 4_ms};
  drive.update(slow);
  EXPECT_EQ(drive.view().write_cost_x10, 50u);
  drive.update(slow);
  EXPECT_EQ(drive.view().write_cost_x10, 70u);
  repeat(drive, 20, slow);
  EXPECT_GE(drive.view().write_cost_x10, 89u);
  EXPECT_GE(drive.view().fragmentation, 980);
  // The average of delays takes some epochs to come down.
  const DriveEstimate::Sample quick{
      .write_bytes_per_s = 50'000'000, .read_delay = {}, .write_delay = 50_us};
  repeat(drive, 12, quick);
  const uint32_t before = drive.view().write_cost_x10;
  drive.update(quick);
  EXPECT_EQ(drive.view().write_cost_x10, before - 5);
  repeat(drive, 20, quick);
  EXPECT_EQ(drive.view().write_cost_x10, kWriteCostMin);
  EXPECT_EQ(drive.view().fragmentation, 0);
}

TEST(DriveEstimate, TrafficAloneDoesNotCongestADrive) {
  DriveEstimate drive(kProfile);
  repeat(drive, 5, {.read_bytes_per_s = 5 * kRateMax, .read_delay = 90_us, .write_delay = {}});
  EXPECT_EQ(drive.view().used, kRateMax);
  EXPECT_FALSE(drive.view().is_congested);
}

TEST(DriveEstimate, ASlowDriveIsJudgedByTheSameQueueAsAQuickOne) {
  // 1 MB that waits: 1 ms at 1 GB/s, 10 ms at a tenth of it.
  DriveEstimate quick(kProfile);
  DriveEstimate slow({.bytes_per_s = kRateMax / 10});
  repeat(quick, 5, {.read_bytes_per_s = 990'000'000, .read_delay = 1_ms, .write_delay = {}});
  repeat(slow, 5, {.read_bytes_per_s = 99'000'000, .read_delay = 10_ms, .write_delay = {}});
  EXPECT_EQ(slow.view().busy, quick.view().busy);
  EXPECT_NEAR(static_cast<double>(slow.view().rate), static_cast<double>(quick.view().rate) / 10,
              1e6);
  EXPECT_GT(slow.view().rate, 80'000'000u);
}

TEST(DriveEstimate, AWriteCostsNoMoreThanWhatIsLeftByWhatWasWritten) {
  DriveEstimate drive(kProfile);
  // It writes half of what it reads, however long that takes.
  const DriveEstimate::Sample writes{
      .write_bytes_per_s = 500'000'000, .read_delay = {}, .write_delay = 20_ms};
  repeat(drive, 40, writes);
  EXPECT_EQ(drive.view().write_cost_x10, 20u);
  // It comes to write less, and that costs more.
  const DriveEstimate::Sample fewer{
      .write_bytes_per_s = 150'000'000, .read_delay = {}, .write_delay = 20_ms};
  repeat(drive, 5, fewer);
  EXPECT_LT(drive.view().write_cost_x10, 30u);
  repeat(drive, 60, fewer);
  EXPECT_GT(drive.view().write_cost_x10, 60u);
}

}  // namespace
}  // namespace cairn::view
