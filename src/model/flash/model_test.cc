// SPDX-License-Identifier: Apache-2.0
#include "model/flash/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/flash/hammer_testing.h"
#include "model/flash/mean_field.h"
#include "model/flash/precondition.h"

namespace cairn::flash {
namespace {

// Long enough for blocks to be collected many times.
void expect_collected(const Parameters& p, uint64_t seed) {
  EXPECT_GT(hammer(p, seed, 20'000).gc_executions, 10u);
}

TEST(FlashModel, EveryRequestCompletesOnceUnderCollection) {
  for (const GcPolicy policy : {GcPolicy::kGreedy, GcPolicy::kRga, GcPolicy::kRandom,
                                GcPolicy::kRandomP, GcPolicy::kRandomPp, GcPolicy::kFifo}) {
    SCOPED_TRACE(static_cast<int>(policy));
    Parameters p = small_drive();
    p.gc_policy = policy;
    p.gc_preemptible = policy != GcPolicy::kRga;
    expect_collected(p, 7);
  }
}

TEST(FlashModel, EveryCacheModeLosesNothing) {
  for (const CacheMode mode :
       {CacheMode::kOff, CacheMode::kWrite, CacheMode::kRead, CacheMode::kReadWrite}) {
    SCOPED_TRACE(static_cast<int>(mode));
    Parameters p = small_drive();
    p.streams[0].cache = mode;
    p.suspend_program = true;
    expect_collected(p, 11);
  }
}

TEST(FlashModel, DynamicSpreadAndIdealMappingLoseNothing) {
  Parameters p = small_drive();
  p.dynamic_spread = true;
  p.ideal_mapping = true;
  expect_collected(p, 13);
}

TEST(FlashModel, StreamsKeepToTheirChannels) {
  Parameters p = small_drive();
  p.over_provisioning = 0.3;
  p.streams = {{.channels = {0}}, {.priority = PriorityClass::kLow, .channels = {1}}};
  expect_collected(p, 17);
  FlashModel model(p);
  for (uint32_t stream = 0; stream < 2; ++stream) {
    for (const uint32_t plane : model.domains()[stream].spread) {
      EXPECT_EQ(model.geometry().channel_of_chip(model.geometry().chip_of_plane(plane)), stream);
    }
  }
}

TEST(FlashModel, SameRequestsSameTimes) {
  const auto run = [] {
    FlashModel model(small_drive());
    uint64_t sum = 0;
    run_synthetic(model, {.read_fraction = 0.5, .requests = 5000, .queue_depth = 16},
                  [&](const Completion& c) { sum = sum * 31 + static_cast<uint64_t>(c.done); });
    return sum;
  };
  EXPECT_EQ(run(), run());
}

TEST(FlashModel, ReadSuspendsAnErase) {
  Parameters p = small_drive();
  p.suspend_erase = true;
  p.suspend_erase_ns = 10'000;
  p.worth_suspending_erase_ns = 50'000;
  p.erase_ns = 5'000'000;
  FlashModel model(p);
  run_synthetic(model, {.read_fraction = 0.6, .requests = 30'000, .queue_depth = 16},
                [](const Completion&) {});
  EXPECT_GT(model.counters().erase_suspensions, 0u);
}

TEST(FlashModel, TrimmedPagesAreNotMoved) {
  const Parameters p = small_drive();
  FlashModel model(p);
  Recorder recorder;
  const uint64_t sectors = model.domains()[0].logical_sectors;
  Nanos now = 0;
  uint64_t cookie = 0;
  for (uint64_t lba = 0; lba + 8 <= sectors; lba += 8) {
    model.advance(now += 50'000, recorder);
    model.submit({.op = Op::kWrite, .lba = lba, .sectors = 8, .cookie = cookie++}, now);
  }
  model.advance(kNever, recorder);
  uint64_t before = 0;
  for (uint32_t i = 0; i < model.geometry().planes(); ++i) before += model.blocks().valid_pages(i);
  model.submit(
      {.op = Op::kTrim, .lba = 0, .sectors = static_cast<uint32_t>(sectors), .cookie = cookie},
      model.now());
  model.advance(kNever, recorder);
  uint64_t after = 0;
  for (uint32_t i = 0; i < model.geometry().planes(); ++i) after += model.blocks().valid_pages(i);
  EXPECT_GE(before - after, sectors / 8 * 9 / 10);
  EXPECT_EQ(broken_law(model), "");
}

// The mapping cache against the plainest LRU there is.
TEST(MappingCache, EvictsAsALeastRecentlyUsedListDoes) {
  PageTable pages(1000);
  MappingCache cache(pages, 32, 10);
  std::vector<uint32_t> model;  // most recent first
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto lpa = static_cast<uint32_t>(rng.below(100));
    const auto found = std::ranges::find(model, lpa);
    ASSERT_EQ(cache.has(lpa), found != model.end());
    if (found != model.end()) {
      model.erase(found);
      cache.touch(cache.find(lpa));
    } else {
      if (cache.full()) {
        bool dirty = false;
        ASSERT_EQ(cache.evict(dirty), model.back());
        model.pop_back();
      }
      cache.insert(lpa, lpa / 100, false);
    }
    model.insert(model.begin(), lpa);
  }
}

TEST(Precondition, SteadyStateIsADistributionWithTheRightMean) {
  for (const GcPolicy policy : {GcPolicy::kGreedy, GcPolicy::kRga}) {
    const std::vector<double> state = steady_state(policy, 64, 0.8, 9, 0);
    double sum = 0;
    double mean = 0;
    for (size_t i = 0; i < state.size(); ++i) {
      sum += state[i];
      mean += state[i] * static_cast<double>(i) / 64;
    }
    EXPECT_NEAR(sum, 1, 0.01);
    EXPECT_NEAR(mean, 0.8, 0.04);
  }
}

TEST(Precondition, PreconditionedDriveIsConsistentAndCollects) {
  FlashModel model(small_drive());
  const Synthetic load{.read_fraction = 0, .requests = 5000, .queue_depth = 16};
  ASSERT_TRUE(precondition(model, load, 0.9));
  EXPECT_EQ(broken_law(model), "");
  run_synthetic(model, load, [](const Completion&) {});
  EXPECT_GT(model.counters().gc_executions, 0u);
  EXPECT_GT(model.counters().write_amplification(), 1.1);
  EXPECT_EQ(broken_law(model), "");
}

TEST(Parameters, ImpossibleDrivesAreNamed) {
  Parameters p = small_drive();
  p.dies_per_chip = 0;
  EXPECT_EQ(check(p)->member, "dies_per_chip");
  p = small_drive();
  p.over_provisioning = 0.01;
  EXPECT_EQ(check(p)->member, "over_provisioning");
  p = small_drive();
  p.streams[0].channels = {5};
  EXPECT_EQ(check(p)->member, "streams");
}

TEST(Parameters, AllOrdersOfLevelsRoundTrip) {
  std::string letters = "CDPW";
  int orders = 0;
  do {
    ASSERT_TRUE(parse_spread(letters));
    EXPECT_EQ(text(*parse_spread(letters)), letters);
    ++orders;
  } while (std::ranges::next_permutation(letters).found);
  EXPECT_EQ(orders, 24);
  EXPECT_FALSE(parse_spread("CCDP"));
}

}  // namespace
}  // namespace cairn::flash
