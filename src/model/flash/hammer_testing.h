// SPDX-License-Identifier: Apache-2.0
// What tests of the flash model share: a small drive, and a load that finds its mistakes.
#pragma once

#include <gtest/gtest.h>

#include <set>

#include "model/flash/model.h"
#include "testing/flash/checked_drive.h"

namespace cairn::flash {

// 64 planes' worth of a drive would hide errors: two channels, small blocks.
inline Parameters small_drive() {
  Parameters p;
  p.channels = 2;
  p.chips_per_channel = 2;
  p.dies_per_chip = 2;
  p.planes_per_die = 2;
  p.blocks_per_plane = 48;
  p.pages_per_block = 16;
  p.page_bytes = 4096;
  p.over_provisioning = 0.25;
  p.cache_bytes = 256 << 10;
  p.mapping_cache_bytes = 8192;
  p.read_ns.fill(20'000);
  p.program_ns.fill(100'000);
  p.erase_ns = 500'000;
  return p;
}

class Recorder final : public CompletionSink {
 public:
  void completed(const Completion& c) override {
    EXPECT_TRUE(cookies.insert(c.cookie).second) << c.cookie << " completed twice";
    EXPECT_GT(c.done, c.arrival);
    time_in_drive += static_cast<double>(c.done - c.arrival);
    last = c.done;
  }
  std::set<uint64_t> cookies;
  double time_in_drive = 0;
  Nanos last = 0;
};

// Random reads, writes and trims of all sizes. Each completes once, the time they spend in the
// drive is what Little's law says, and the tables agree in the end. Returns what the drive did.
inline Counters hammer(const Parameters& p, uint64_t seed, uint64_t count) {
  const auto problem = check(p);
  EXPECT_FALSE(problem) << problem->member << " " << problem->text;
  if (problem) return {};
  FlashModel model(p);
  Rng rng(seed);
  Recorder recorder;
  Nanos now = 0;
  // The area under "requests in the drive" must be the sum of their latencies.
  double area = 0;
  Nanos before = 0;
  const auto account = [&] {
    area += static_cast<double>(model.in_flight()) * static_cast<double>(model.now() - before);
    before = model.now();
  };
  for (uint64_t i = 0; i < count; ++i) {
    now += static_cast<Nanos>(rng.exponential(60'000));
    while (model.next_event() <= now) {
      const Nanos next = model.next_event();
      area += static_cast<double>(model.in_flight()) * static_cast<double>(next - before);
      before = next;
      model.advance(next, recorder);
    }
    model.advance(now, recorder);
    account();
    const uint64_t kind = rng.below(10);
    const Op op = kind < 3 ? Op::kRead : kind < 9 ? Op::kWrite : Op::kTrim;
    const auto stream = static_cast<uint32_t>(rng.below(p.streams.size()));
    model.submit({.op = op,
                  .stream = stream,
                  .lba = rng.below(model.domains()[stream].logical_sectors),
                  .sectors = static_cast<uint32_t>(rng.between(1, 40)),
                  .cookie = i},
                 now);
  }
  while (model.next_event() != kNever) {
    const Nanos next = model.next_event();
    area += static_cast<double>(model.in_flight()) * static_cast<double>(next - before);
    before = next;
    model.advance(next, recorder);
  }
  EXPECT_EQ(recorder.cookies.size(), count);
  EXPECT_EQ(model.in_flight(), 0u);
  EXPECT_EQ(model.counters().requests_lost, 0u);
  EXPECT_NEAR(area / recorder.time_in_drive, 1.0, 1e-6);
  EXPECT_EQ(broken_law(model), "");
  return model.counters();
}

}  // namespace cairn::flash
