// SPDX-License-Identifier: Apache-2.0
// The long run of the model's collector against the analysis: uniform random overwrites of a drive
// that has been written over many times, by the model itself.
#include "model/flash/mean_field.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "model/flash/precondition.h"

namespace cairn::flash {
namespace {

constexpr double kOverProvisionings[] = {0.07, 0.12, 0.20, 0.28};

// Two planes that do nothing but write: no cache that joins writes, no mapping pages among data.
Parameters bare_drive(double over_provisioning, uint32_t blocks, uint32_t pages) {
  Parameters p;
  p.channels = 1;
  p.chips_per_channel = 1;
  p.dies_per_chip = 2;
  p.planes_per_die = 1;
  p.blocks_per_plane = blocks;
  p.pages_per_block = pages;
  p.page_bytes = 4096;
  p.over_provisioning = over_provisioning;
  p.ideal_mapping = true;
  p.streams[0].cache = CacheMode::kOff;
  p.read_ns.fill(1000);
  p.program_ns.fill(2000);
  p.erase_ns = 3000;
  return p;
}

struct LongRun {
  double load = 0;  // valid pages of the pages of closed blocks
  double write_amplification = 0;
};

double load_of_closed_blocks(const FlashModel& model) {
  uint64_t written = 0;
  uint64_t invalid = 0;
  const Geometry& g = model.geometry();
  for (uint32_t i = 0; i < g.planes() * g.blocks(); ++i) {
    const Block& block = model.blocks()[i];
    if (block.written != g.pages() || block.mapping || block.collecting) continue;
    written += block.written;
    invalid += block.invalid;
  }
  return 1 - static_cast<double>(invalid) / static_cast<double>(written);
}

// Writes as much as `passes` times the whole drive, and measures that.
LongRun measure(FlashModel& model, double passes) {
  const Counters before = model.counters();
  Synthetic writes{.read_fraction = 0, .queue_depth = 4, .seed = 5};
  writes.requests =
      static_cast<uint64_t>(passes * static_cast<double>(model.domains()[0].logical_pages));
  constexpr uint64_t kEvery = 997;
  uint64_t completions = 0;
  uint64_t looks = 0;
  double loads = 0;
  run_synthetic(model, writes, [&](const Completion&) {
    if (++completions % kEvery != 0) return;
    loads += load_of_closed_blocks(model);
    ++looks;
  });
  const auto user =
      static_cast<double>(model.counters().user_pages_programmed - before.user_pages_programmed);
  const auto moved =
      static_cast<double>(model.counters().gc_pages_programmed - before.gc_pages_programmed);
  return {.load = loads / static_cast<double>(looks), .write_amplification = (user + moved) / user};
}

LongRun run_long(const Parameters& p) {
  EXPECT_FALSE(check(p));
  FlashModel model(p);
  precondition_by_replay(model, {.read_fraction = 0, .queue_depth = 4}, 5);
  return measure(model, 2);
}

// The rows of the table in docs/flash.md.
void expect_as_analysed(const char* policy, double spare, const LongRun& run, double expected) {
  fmt::print("{:<7} spare {:2.0f}%  load {:.4f}  model {:.3f}  mean field {:.3f}\n", policy,
             spare * 100, run.load, run.write_amplification, expected);
  EXPECT_NEAR(run.write_amplification / expected, 1, 0.01);
}

TEST(MeanField, GreedyIsTheLimitOfManyChoices) {
  for (const uint32_t pages : {16U, 64U, 256U}) {
    for (const double spare : kOverProvisionings) {
      const MeanField greedy = greedy_mean_field(pages, 1 - spare);
      const double many = choices_mean_field(pages, 1 - spare, 20'000).write_amplification;
      EXPECT_NEAR(many / greedy.write_amplification, 1, 1e-4) << pages << " " << spare;
      EXPECT_GT(choices_mean_field(pages, 1 - spare, 8).write_amplification,
                greedy.write_amplification);
    }
  }
}

TEST(MeanField, LargeBlocksFollowTheClosedForm) {
  // Desnoyers, "Analytic modeling of SSD write performance" (SYSTOR 2012): the victim's valid part
  // v solves (1 - v) / -ln v = load when blocks are large.
  for (const double v : {0.2, 0.5, 0.8}) {
    const double load = (1 - v) / -std::log(v);
    EXPECT_NEAR(greedy_mean_field(8192, load).write_amplification * (1 - v), 1, 0.002);
  }
}

TEST(MeanField, OneChoiceMovesAsMuchAsTheAverageBlockHolds) {
  EXPECT_NEAR(choices_mean_field(64, 0.8, 1).write_amplification, 5, 1e-6);
}

TEST(MeanField, DistributionsSumToOneAndHoldTheLoad) {
  const auto expect_whole = [](const MeanField& found, double load) {
    double mean = 0;
    for (size_t i = 0; i < found.valid.size(); ++i) {
      EXPECT_GE(found.valid[i], -1e-12);
      mean += found.valid[i] * static_cast<double>(i);
    }
    EXPECT_NEAR(std::accumulate(found.valid.begin(), found.valid.end(), 0.0), 1, 1e-9);
    EXPECT_NEAR(mean / static_cast<double>(found.valid.size() - 1), load, 1e-9);
    EXPECT_GE(found.write_amplification, 1);
  };
  for (const uint32_t pages : {2U, 3U, 16U, 256U}) {
    for (const double load : {0.01, 0.1, 0.3, 0.45}) {
      expect_whole(greedy_mean_field(pages, load), load);
      expect_whole(choices_mean_field(pages, load, 9), load);
    }
  }
  for (const double spare : kOverProvisionings) {
    expect_whole(greedy_mean_field(64, 1 - spare), 1 - spare);
    expect_whole(choices_mean_field(64, 1 - spare, 9), 1 - spare);
  }
}

TEST(WriteAmplification, OfGreedyIsThatOfTheMeanField) {
  for (const double spare : kOverProvisionings) {
    const LongRun run = run_long(bare_drive(spare, 512, 64));
    expect_as_analysed("greedy", spare, run, greedy_mean_field(64, run.load).write_amplification);
  }
}

TEST(WriteAmplification, OfRandomisedGreedyIsThatOfItsChoices) {
  for (const double spare : kOverProvisionings) {
    Parameters p = bare_drive(spare, 512, 64);
    p.gc_policy = GcPolicy::kRga;
    const LongRun run = run_long(p);
    // The model draws log2(512) blocks.
    expect_as_analysed("rga", spare, run, choices_mean_field(64, run.load, 9).write_amplification);
  }
}

TEST(WriteAmplification, OfLargeBlocksIsThatOfTheMeanField) {
  const LongRun run = run_long(bare_drive(0.2, 256, 256));
  const double expected = greedy_mean_field(256, run.load).write_amplification;
  EXPECT_NEAR(run.write_amplification / expected, 1, 0.02);
}

// What frontiers and free blocks take from the spare space matters less the more blocks there are:
// then the load is simply what over-provisioning leaves.
TEST(WriteAmplification, ApproachesTheMeanFieldOfTheWholeDriveAsBlocksGrow) {
  double before = 1;
  for (const uint32_t blocks : {128U, 256U, 512U, 1024U}) {
    const LongRun run = run_long(bare_drive(0.2, blocks, 32));
    const double whole = greedy_mean_field(32, 0.8).write_amplification;
    const double error = std::abs(run.write_amplification / whole - 1);
    EXPECT_LT(error, before) << blocks;
    before = error;
  }
  EXPECT_LT(before, 0.03);
}

// A drive that was only put into the state of the analysis behaves at once as one that got there.
TEST(WriteAmplification, IsRightFromTheStartAfterAnalyticPreconditioning) {
  Parameters p = bare_drive(0.12, 512, 64);
  FlashModel greedy(p);
  ASSERT_TRUE(precondition(greedy, {.read_fraction = 0}, 0.9));
  const LongRun first = measure(greedy, 0.1);
  EXPECT_NEAR(first.write_amplification / greedy_mean_field(64, first.load).write_amplification, 1,
              0.05);
  p.gc_policy = GcPolicy::kRga;
  FlashModel drawn(p);
  ASSERT_TRUE(precondition(drawn, {.read_fraction = 0}, 0.9));
  const LongRun second = measure(drawn, 0.1);
  EXPECT_NEAR(
      second.write_amplification / choices_mean_field(64, second.load, 9).write_amplification, 1,
      0.05);
}

}  // namespace
}  // namespace cairn::flash
