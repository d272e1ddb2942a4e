// SPDX-License-Identifier: Apache-2.0
// The FTL against a map of sectors, over random requests with collection and power cuts.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/flash/checked_drive.h"

namespace cairn::flash {
namespace {

// Small enough that blocks are collected all the time and pages meet each other.
Parameters tiny_drive() {
  Parameters p;
  p.channels = 2;
  p.chips_per_channel = 1;
  p.dies_per_chip = 2;
  p.planes_per_die = 2;
  p.blocks_per_plane = 32;
  p.pages_per_block = 8;
  p.page_bytes = 4096;
  p.over_provisioning = 0.3;
  p.cache_bytes = 32 * 4096;
  p.mapping_cache_bytes = 4096;
  p.read_ns.fill(20'000);
  p.program_ns.fill(100'000);
  p.erase_ns = 500'000;
  p.static_wear_threshold = 4;
  return p;
}

struct Played {
  Counters counters;
  std::string problem;
};

Played play_random(const Parameters& p, double occupancy, uint64_t seed, size_t steps) {
  CheckedDrive drive(p, occupancy);
  Rng rng(seed);
  std::vector<uint8_t> script(4 * steps);
  for (uint8_t& byte : script) byte = static_cast<uint8_t>(rng.below(256));
  Played played;
  played.problem = play(drive, script);
  played.counters = drive.model().counters();
  return played;
}

// Both kinds of cache, new and used, with many seeds each.
void expect_right(const Parameters& p, const std::string& what) {
  ASSERT_FALSE(check(p)) << check(p)->member << " " << check(p)->text;
  for (const bool cache_protected : {true, false}) {
    for (const double occupancy : {0.0, 0.8}) {
      uint64_t collections = 0;
      for (uint64_t seed = 1; seed <= 6; ++seed) {
        Parameters drive = p;
        drive.cache_protected = cache_protected;
        const Played played = play_random(drive, occupancy, seed, 1500);
        ASSERT_EQ(played.problem, "") << what << ", protected " << cache_protected << ", occupancy "
                                      << occupancy << ", seed " << seed;
        collections += played.counters.gc_executions;
      }
      EXPECT_GT(collections, 20u) << what;
    }
  }
}

TEST(Ftl, IsAMapUnderEveryCollectionPolicy) {
  for (const GcPolicy policy : {GcPolicy::kGreedy, GcPolicy::kRga, GcPolicy::kRandom,
                                GcPolicy::kRandomP, GcPolicy::kRandomPp, GcPolicy::kFifo}) {
    Parameters p = tiny_drive();
    p.gc_policy = policy;
    expect_right(p, "policy " + std::to_string(static_cast<int>(policy)));
  }
}

TEST(Ftl, IsAMapUnderEveryCacheMode) {
  for (const CacheMode mode :
       {CacheMode::kOff, CacheMode::kWrite, CacheMode::kRead, CacheMode::kReadWrite}) {
    Parameters p = tiny_drive();
    p.streams[0].cache = mode;
    expect_right(p, "cache " + std::to_string(static_cast<int>(mode)));
  }
}

TEST(Ftl, IsAMapWhereverPagesGo) {
  Parameters p = tiny_drive();
  p.dynamic_spread = true;
  expect_right(p, "dynamic spread");
  p.ideal_mapping = true;
  expect_right(p, "dynamic spread, ideal mapping");
  p.dynamic_spread = false;
  expect_right(p, "ideal mapping");
}

TEST(Ftl, IsAMapWhateverWears) {
  Parameters p = tiny_drive();
  p.static_wear_threshold = 1;
  expect_right(p, "eager wear levelling");
  p.static_wear_levelling = false;
  p.dynamic_wear_levelling = false;
  expect_right(p, "no wear levelling");
}

TEST(Ftl, IsAMapWhenPagesAreCopiedBack) {
  Parameters p = tiny_drive();
  p.copyback = true;
  p.suspend_program = true;
  p.suspend_program_ns = 5'000;
  p.worth_suspending_program_ns = 20'000;
  expect_right(p, "copyback");
}

TEST(Ftl, IsAMapForStreamsOfTheirOwn) {
  Parameters p = tiny_drive();
  p.blocks_per_plane = 48;
  p.gc_preemptible = false;
  p.streams = {{}, {.priority = PriorityClass::kLow, .cache = CacheMode::kReadWrite}};
  expect_right(p, "two streams");
}

TEST(Ftl, IsAMapWithLargePagesAndSmallCaches) {
  Parameters p = tiny_drive();
  p.blocks_per_plane = 16;
  p.over_provisioning = 0.6;
  p.page_bytes = 32768;
  p.cache_bytes = 4 * 32768;
  p.cache_evicts_dirty_only = true;
  expect_right(p, "32 KiB pages");
}

}  // namespace
}  // namespace cairn::flash
