// SPDX-License-Identifier: Apache-2.0
// Who goes first, how evenly blocks wear, what trimmed and copied pages cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/rng.h"
#include "model/flash/precondition.h"

namespace cairn::flash {
namespace {

// One die with one plane: whoever is served first is seen at once.
Parameters one_die() {
  Parameters p;
  p.channels = 1;
  p.chips_per_channel = 1;
  p.dies_per_chip = 1;
  p.planes_per_die = 1;
  p.blocks_per_plane = 128;
  p.pages_per_block = 32;
  p.page_bytes = 4096;
  p.over_provisioning = 0.4;
  p.ideal_mapping = true;
  p.read_ns.fill(20'000);
  p.program_ns.fill(100'000);
  p.erase_ns = 500'000;
  p.suspend_erase = false;
  return p;
}

// Keeps every stream's queue full and counts what each got done.
class KeepBusy final : public CompletionSink {
 public:
  KeepBusy(FlashModel& model, Op op, uint32_t depth) : model_(model), op_(op) {
    done.resize(model.domains().size());
    for (uint32_t stream = 0; stream < done.size(); ++stream) {
      for (uint32_t i = 0; i < depth; ++i) ask(stream);
    }
  }
  void completed(const Completion& completion) override {
    ++done[completion.stream];
    ask(completion.stream);
  }
  std::vector<uint64_t> done;

 private:
  void ask(uint32_t stream) {
    const uint64_t pages = model_.domains()[stream].logical_pages / 2;
    model_.submit({.op = op_, .stream = stream, .lba = rng_.below(pages) * 8, .sectors = 8},
                  model_.now());
  }
  FlashModel& model_;
  Op op_;
  Rng rng_{3};
};

TEST(Priorities, BusyClassesShareFourToTwoToOne) {
  for (const Op op : {Op::kRead, Op::kWrite}) {
    Parameters p = one_die();
    p.blocks_per_plane = 1024;  // nothing is collected meanwhile
    p.streams = {{.priority = PriorityClass::kHigh, .cache = CacheMode::kOff},
                 {.priority = PriorityClass::kMedium, .cache = CacheMode::kOff},
                 {.priority = PriorityClass::kLow, .cache = CacheMode::kOff}};
    FlashModel model(p);
    KeepBusy load(model, op, 64);
    model.advance(1'000'000'000, load);
    const auto all = static_cast<double>(load.done[0] + load.done[1] + load.done[2]);
    EXPECT_GT(all, 5000);
    EXPECT_NEAR(static_cast<double>(load.done[0]) / all, 4.0 / 7, 0.02 * 4 / 7);
    EXPECT_NEAR(static_cast<double>(load.done[1]) / all, 2.0 / 7, 0.02 * 2 / 7);
    EXPECT_NEAR(static_cast<double>(load.done[2]) / all, 1.0 / 7, 0.02 * 1 / 7);
  }
}

TEST(Priorities, UrgentLeavesNothingToOthersWhileItIsBusy) {
  Parameters p = one_die();
  p.streams = {{.priority = PriorityClass::kUrgent, .cache = CacheMode::kOff},
               {.priority = PriorityClass::kHigh, .cache = CacheMode::kOff}};
  FlashModel model(p);
  KeepBusy load(model, Op::kRead, 16);
  model.advance(200'000'000, load);
  EXPECT_GT(load.done[0], 5000u);
  EXPECT_LE(load.done[1], 1u);
}

class Order final : public CompletionSink {
 public:
  void completed(const Completion& completion) override { ops.push_back(completion.op); }
  std::vector<Op> ops;
};

TEST(Priorities, ReadsGoBeforeProgramsThatWaitLonger) {
  Parameters p = one_die();
  p.streams[0].cache = CacheMode::kOff;
  FlashModel model(p);
  Order order;
  for (uint64_t i = 0; i < 10; ++i) model.submit({.op = Op::kWrite, .lba = i * 8, .sectors = 8}, 0);
  model.advance(50'000, order);  // the first program is under way
  for (uint64_t i = 0; i < 5; ++i) {
    model.submit({.op = Op::kRead, .lba = (100 + i) * 8, .sectors = 8}, model.now());
  }
  model.advance(kNever, order);
  ASSERT_EQ(order.ops.size(), 15u);
  EXPECT_EQ(order.ops[0], Op::kWrite);
  for (size_t i = 1; i <= 5; ++i) EXPECT_EQ(order.ops[i], Op::kRead) << i;
}

// Programs of users go before the collector's work until blocks are scarce.
TEST(Priorities, CollectorWaitsForUsersUntilItMustNot) {
  Parameters p = one_die();
  p.streams[0].cache = CacheMode::kOff;
  p.gc_threshold = 0.2;
  FlashModel model(p);
  const Synthetic writes{.read_fraction = 0};
  ASSERT_TRUE(precondition(model, writes, 0.8));
  KeepBusy load(model, Op::kWrite, 32);
  uint64_t erased = 0;
  size_t free_max = 0;
  while (erased < 50) {
    model.advance(model.next_event(), load);
    if (model.counters().blocks_erased == erased) continue;
    erased = model.counters().blocks_erased;
    if (erased > 10) free_max = std::max(free_max, model.blocks().free_blocks(0));
  }
  EXPECT_LE(free_max, 5u) << "users had the die as long as there was room";
  Order quiet;
  FlashModel idle(p);
  ASSERT_TRUE(precondition(idle, writes, 0.8));
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t page = rng.below(idle.domains()[0].logical_pages);
    idle.submit({.op = Op::kWrite, .lba = page * 8, .sectors = 8}, idle.now());
    idle.advance(kNever, quiet);
  }
  EXPECT_GE(idle.blocks().free_blocks(0) + 1, idle.gc_start_blocks());
}

Parameters worn_drive() {
  Parameters p = one_die();
  p.channels = 2;
  p.pages_per_block = 16;
  p.blocks_per_plane = 48;
  p.over_provisioning = 0.25;
  p.static_wear_threshold = 8;
  p.streams[0].cache = CacheMode::kOff;
  return p;
}

// Fills the drive, then writes to a tenth of it; the largest difference of erases in a plane.
uint32_t wear_difference(const Parameters& p) {
  FlashModel model(p);
  const auto ignore = [](const Completion&) {};
  run_synthetic(model, {.read_fraction = 0, .requests = 4'000, .queue_depth = 8}, ignore);
  run_synthetic(model,
                {.read_fraction = 0, .working_set = 0.1, .requests = 60'000, .queue_depth = 8},
                ignore);
  uint32_t largest = 0;
  for (uint32_t plane = 0; plane < model.geometry().planes(); ++plane) {
    uint32_t max = 0;
    uint32_t min = UINT32_MAX;
    for (uint32_t i = 0; i < model.geometry().blocks(); ++i) {
      const uint32_t block = plane * model.geometry().blocks() + i;
      if (model.blocks().is_frontier(block)) continue;  // as worn as it was until it is full
      max = std::max(max, model.blocks()[block].erases);
      min = std::min(min, model.blocks()[block].erases);
    }
    largest = std::max(largest, max - min);
  }
  return largest;
}

TEST(Wear, StaysWithinTheThresholdAndGrowsWithoutLevelling) {
  Parameters p = worn_drive();
  EXPECT_LE(wear_difference(p), p.static_wear_threshold + 4);
  p.static_wear_levelling = false;
  EXPECT_GT(wear_difference(p), 4 * p.static_wear_threshold);
}

// Write amplification of random writes to the first half, with the second half full or trimmed.
double amplification(bool trimmed) {
  FlashModel model(worn_drive());
  const auto ignore = [](const Completion&) {};
  run_synthetic(
      model,
      {.pattern = Pattern::kSequential, .read_fraction = 0, .requests = 1'200, .queue_depth = 8},
      ignore);
  const uint64_t sectors = model.domains()[0].logical_sectors;
  Order order;
  if (trimmed) {
    model.submit(
        {.op = Op::kTrim, .lba = sectors / 2, .sectors = static_cast<uint32_t>(sectors / 2)},
        model.now());
    model.advance(kNever, order);
  }
  run_synthetic(model,
                {.read_fraction = 0, .working_set = 0.5, .requests = 20'000, .queue_depth = 8},
                ignore);
  return model.counters().write_amplification();
}

TEST(Trim, CostsTheCollectorNothing) { EXPECT_LT(amplification(true), 0.9 * amplification(false)); }

struct Outcome {
  Counters counters;
  Nanos bus = 0;
};

Outcome collect(bool copyback) {
  Parameters p = worn_drive();
  p.copyback = copyback;
  FlashModel model(p);
  const Synthetic writes{.read_fraction = 0, .requests = 5'000, .queue_depth = 8};
  EXPECT_TRUE(precondition(model, writes, 0.85));
  run_synthetic(model, writes, [](const Completion&) {});
  return {.counters = model.counters(), .bus = model.channel_busy(0) + model.channel_busy(1)};
}

TEST(Copyback, MovesTheSamePagesAndSparesTheBus) {
  const Outcome over_bus = collect(false);
  const Outcome copied = collect(true);
  EXPECT_EQ(over_bus.counters.copybacks, 0u);
  EXPECT_GT(copied.counters.gc_executions, 50u);
  EXPECT_EQ(copied.counters.copybacks, copied.counters.gc_pages_programmed);
  EXPECT_EQ(copied.counters.requests_completed, 5'000u);
  const auto moved = static_cast<double>(over_bus.counters.gc_pages_programmed);
  EXPECT_NEAR(static_cast<double>(copied.counters.gc_pages_programmed) / moved, 1, 0.1);
  EXPECT_LT(static_cast<double>(copied.bus), 0.8 * static_cast<double>(over_bus.bus));
}

}  // namespace
}  // namespace cairn::flash
