// SPDX-License-Identifier: Apache-2.0
// What holds of every drive in the default mode, whatever it is made of.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/flash/hammer_testing.h"
#include "model/flash/workload.h"

namespace cairn::flash {
namespace {

template <class T>
T one_of(Rng& rng, std::initializer_list<T> values) {
  return *(values.begin() + rng.below(values.size()));
}

// Any drive that can be built, small enough to be written over in a moment.
Parameters any_drive(Rng& rng) {
  Parameters p = small_drive();
  p.channels = static_cast<uint32_t>(rng.between(1, 4));
  p.chips_per_channel = static_cast<uint32_t>(rng.between(1, 3));
  p.dies_per_chip = static_cast<uint32_t>(rng.between(1, 4));
  p.planes_per_die = static_cast<uint32_t>(rng.between(1, 4));
  p.pages_per_block = static_cast<uint32_t>(rng.between(2, 40));
  p.page_bytes = one_of<uint32_t>(rng, {512, 4096, 16384, 32768});
  p.technology =
      one_of(rng, {Technology::kSlc, Technology::kMlc, Technology::kTlc, Technology::kQlc});
  p.lane_gb_per_s = one_of(rng, {0.1, 1.0, 4.0});
  p.queue_depth = one_of<uint32_t>(rng, {2, 16, 1024});
  p.queue_fetch = one_of<uint32_t>(rng, {1, 8, 512});
  p.command_ns = one_of<Nanos>(rng, {0, 10'000});
  p.cache_bytes = p.page_bytes * rng.between(1, 64);
  p.write_back_pages = static_cast<uint32_t>(rng.between(1, 4));
  p.cache_evicts_dirty_only = rng.below(2) == 0;
  p.ideal_mapping = rng.below(4) == 0;
  p.dynamic_spread = rng.below(3) == 0;
  p.gc_policy = static_cast<GcPolicy>(rng.below(6));
  p.gc_preemptible = rng.below(2) == 0;
  p.dynamic_wear_levelling = rng.below(2) == 0;
  p.static_wear_threshold = one_of<uint32_t>(rng, {4, 100});
  p.suspend_program = rng.below(2) == 0;
  p.suspend_erase = rng.below(2) == 0;
  p.suspend_erase_ns = one_of<Nanos>(rng, {0, 20'000});
  p.worth_suspending_erase_ns = one_of<Nanos>(rng, {0, 100'000});
  p.worth_suspending_program_ns = one_of<Nanos>(rng, {0, 30'000});
  p.channel_mt_per_s = one_of<uint32_t>(rng, {100, 333, 1200});
  p.read_ns.fill(one_of<Nanos>(rng, {0, 5'000, 50'000}));
  p.program_ns.fill(one_of<Nanos>(rng, {0, 100'000, 300'000}));
  p.streams.resize(rng.between(1, 3));
  for (StreamParameters& stream : p.streams) {
    stream.cache = static_cast<CacheMode>(rng.below(4));
    stream.priority = static_cast<PriorityClass>(rng.below(4));
  }
  p.blocks_per_plane = static_cast<uint32_t>(rng.between(32, 64) * p.streams.size());
  p.over_provisioning = 0.3 + 0.3 * rng.uniform();
  return p;
}

// Completion once, and Little's law to 1e-6, are hammer()'s to see.
TEST(EveryDrive, LosesNothingAndObeysLittlesLaw) {
  uint64_t collections = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    collections += hammer(any_drive(rng), seed, 2'000).gc_executions;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(collections, 100u);
}

// Drives that once lost requests.
TEST(EveryDrive, ServesAStreamOfTheLowestClass) {
  Parameters p = small_drive();
  p.streams[0] = {.priority = PriorityClass::kLow, .cache = CacheMode::kOff};
  p.suspend_program = true;
  p.worth_suspending_program_ns = 0;
  hammer(p, 2, 10'000);
}

TEST(EveryDrive, GoesOnWhenAPartialOverwriteMovesToAnotherChannel) {
  Parameters p = small_drive();
  p.dynamic_spread = true;
  p.streams[0].cache = CacheMode::kOff;
  p.page_bytes = 32768;
  hammer(p, 3, 10'000);
}

TEST(EveryDrive, TakesWritesWhenItsCacheIsFullOfWhatWasRead) {
  Parameters p = small_drive();
  p.streams[0].cache = CacheMode::kReadWrite;
  p.cache_evicts_dirty_only = true;
  p.cache_bytes = 16 * p.page_bytes;
  hammer(p, 4, 10'000);
}

TEST(EveryDrive, FindsAVictimWhenTheOneDrawnHasNoGarbage) {
  for (const GcPolicy policy : {GcPolicy::kRandom, GcPolicy::kRandomPp, GcPolicy::kRga}) {
    Parameters p = small_drive();
    p.gc_policy = policy;
    p.pages_per_block = 2;
    p.streams[0].cache = CacheMode::kOff;
    hammer(p, 5, 5'000);
  }
}

struct Result {
  double iops = 0;
  Nanos read_p99 = 0;
  Counters counters;
};

Result run(const Parameters& p, const Synthetic& load) {
  EXPECT_FALSE(check(p));
  FlashModel model(p);
  Nanos last = 0;
  std::vector<Nanos> reads;
  run_synthetic(model, load, [&](const Completion& c) {
    last = c.done;
    if (c.op == Op::kRead) reads.push_back(c.done - c.arrival);
  });
  Result result{.iops = static_cast<double>(load.requests) * 1e9 / static_cast<double>(last),
                .counters = model.counters()};
  if (!reads.empty()) {
    const auto p99 = reads.begin() + static_cast<ptrdiff_t>(reads.size() * 99 / 100);
    std::ranges::nth_element(reads, p99);
    result.read_p99 = *p99;
  }
  return result;
}

// One die, fast links around it.
Parameters one_die() {
  Parameters p = small_drive();
  p.channels = 1;
  p.chips_per_channel = 1;
  p.dies_per_chip = 1;
  p.planes_per_die = 1;
  p.blocks_per_plane = 512;
  p.lanes = 16;
  p.channel_mt_per_s = 1200;
  p.ideal_mapping = true;
  return p;
}

constexpr Synthetic kReads{.read_fraction = 1, .requests = 6000, .queue_depth = 256};
constexpr Synthetic kWrites{.read_fraction = 0, .requests = 6000, .queue_depth = 256};

TEST(Parallelism, MoreOfAnyKindIsNeverSlower) {
  for (const Synthetic& load : {kReads, kWrites}) {
    for (uint32_t Parameters::* count :
         {&Parameters::channels, &Parameters::chips_per_channel, &Parameters::dies_per_chip}) {
      Parameters p = one_die();
      double before = 0;
      for (const uint32_t many : {1, 2, 3, 4, 6, 8, 12, 16}) {
        p.*count = many;
        const double now = run(p, load).iops;
        EXPECT_GE(now, before) << many;
        before = now;
      }
    }
  }
}

TEST(Parallelism, ManyChannelsAreNearlyThatManyTimesFaster) {
  Parameters p = one_die();
  const double one = run(p, kReads).iops;
  p.channels = 4;
  EXPECT_GT(run(p, kReads).iops, 3.5 * one);
}

TEST(Parallelism, DiesOfAChipWorkSideBySide) {
  Parameters p = one_die();
  p.read_ns.fill(100'000);
  p.write_back_pages = 16;
  for (Synthetic load : {kReads, kWrites}) {
    load.pattern = Pattern::kSequential;  // a page for each die in turn
    p.dies_per_chip = 1;
    const double alone = run(p, load).iops;
    p.dies_per_chip = 2;
    EXPECT_GT(run(p, load).iops, 1.9 * alone);
  }
}

// A drive that is full and erases all the time, with reads among the writes.
Result read_under_collection(bool suspend_erase, bool suspend_program) {
  Parameters p = small_drive();
  p.ideal_mapping = true;
  p.pages_per_block = 32;
  p.erase_ns = 5'000'000;
  p.program_ns.fill(400'000);
  p.suspend_erase = suspend_erase;
  p.suspend_program = suspend_program;
  p.suspend_erase_ns = p.suspend_program_ns = 20'000;
  p.worth_suspending_erase_ns = p.worth_suspending_program_ns = 50'000;
  return run(p, {.read_fraction = 0.5, .requests = 100'000, .mean_gap_ns = 200'000});
}

TEST(Suspension, LowersTheTailOfReadsUnderErases) {
  const Result without = read_under_collection(false, false);
  const Result with = read_under_collection(true, false);
  EXPECT_EQ(without.counters.erase_suspensions, 0u);
  EXPECT_GT(with.counters.erase_suspensions, 100u);
  EXPECT_GT(without.counters.blocks_erased, 100u);
  EXPECT_LT(2 * with.read_p99, without.read_p99);
}

TEST(Suspension, LowersTheTailOfReadsUnderPrograms) {
  const Result without = read_under_collection(true, false);
  const Result with = read_under_collection(true, true);
  EXPECT_EQ(without.counters.program_suspensions, 0u);
  EXPECT_GT(with.counters.program_suspensions, 100u);
  EXPECT_LT(with.read_p99, without.read_p99);
}

TEST(Controller, AddsItsTimeToEveryCommandAndToNothingElse) {
  for (const double reads : {1.0, 0.0}) {
    Parameters p = one_die();
    const Synthetic load{.read_fraction = reads, .requests = 100};
    const auto latencies = [&] {
      FlashModel model(p);
      std::vector<Nanos> found;
      run_synthetic(model, load, [&](const Completion& c) { found.push_back(c.done - c.arrival); });
      return found;
    };
    const std::vector<Nanos> without = latencies();
    p.command_ns = 7'000;
    const std::vector<Nanos> with = latencies();
    // A single write may wait for the program before it, and that wait gets shorter.
    EXPECT_EQ(with.front(), without.front() + 7'000);
    if (reads == 1.0) EXPECT_EQ(with.back(), without.back() + 7'000);
  }
}

TEST(Controller, WorksOnManyCommandsAtOnce) {
  Parameters p = one_die();
  const double without = run(p, kReads).iops;
  p.command_ns = 50'000;
  EXPECT_GT(run(p, kReads).iops, 0.99 * without);
}

TEST(MappingWrites, AreCountedAndTakeTheDiesTime) {
  Parameters p = one_die();
  p.streams[0].cache = CacheMode::kOff;
  p.mapping_cache_bytes = 4096;
  Synthetic load = kWrites;
  load.queue_depth = 8;
  const Result ideal = run(p, load);
  EXPECT_EQ(ideal.counters.mapping_pages_programmed, 0u);
  p.ideal_mapping = false;
  FlashModel model(p);
  Nanos last = 0;
  run_synthetic(model, load, [&](const Completion& c) { last = c.done; });
  const Counters& k = model.counters();
  EXPECT_GT(k.mapping_pages_programmed, 20u);
  EXPECT_EQ(k.gc_pages_programmed, 0u);
  // One plane: each page is a command of its own, and the die does one at a time.
  const auto programs = static_cast<Nanos>(k.user_pages_programmed + k.mapping_pages_programmed);
  const auto reads = static_cast<Nanos>(k.mapping_pages_read);
  EXPECT_GE(model.die_busy(0), programs * p.program_ns[0] + reads * p.read_ns[0]);
  EXPECT_GE(last, programs * p.program_ns[0] * 99 / 100);
  EXPECT_LT(static_cast<double>(load.requests) * 1e9 / static_cast<double>(last), ideal.iops);
}

}  // namespace
}  // namespace cairn::flash
