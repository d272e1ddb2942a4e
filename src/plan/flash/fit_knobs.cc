// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/fit_knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cairn::plan {

namespace {

using flash::Nanos;
using flash::Parameters;

// Times of page types keep their ratios: one drive's pages are slower than another's together.
double mean_of(const std::array<Nanos, 4>& times, flash::Technology technology) {
  const auto types = static_cast<size_t>(technology);
  double sum = 0;
  for (size_t i = 0; i < types; ++i) sum += static_cast<double>(times[i]);
  return sum / static_cast<double>(types);
}

void scale_to(std::array<Nanos, 4>& times, flash::Technology technology, double mean) {
  const double before = mean_of(times, technology);
  for (Nanos& time : times) {
    time =
        before > 0 ? std::llround(static_cast<double>(time) * mean / before) : std::llround(mean);
  }
}

// A controller that takes none, where logarithms need something.
constexpr double kNoTime = 100;

uint32_t whole(double value) { return static_cast<uint32_t>(std::llround(value)); }

constexpr std::array<FitKnob, 8> kKnobs = {{
    {.key = "command",
     .is_whole = false,
     .min = kNoTime,
     .max = 1e6,
     .get = [](const Parameters& p) { return static_cast<double>(p.command_ns); },
     .set = [](Parameters& p, double v) { p.command_ns = v <= kNoTime ? 0 : std::llround(v); },
     .load = "--rw=randwrite --bs=4k --iodepth=1 --size=1m"},
    {.key = "read",
     .is_whole = false,
     .min = 500,
     .max = 1e7,
     .get = [](const Parameters& p) { return mean_of(p.read_ns, p.technology); },
     .set = [](Parameters& p, double v) { scale_to(p.read_ns, p.technology, v); },
     .load = "--rw=randread --bs=4k --iodepth=1"},
    {.key = "program",
     .is_whole = false,
     .min = 1000,
     .max = 1e8,
     .get = [](const Parameters& p) { return mean_of(p.program_ns, p.technology); },
     .set = [](Parameters& p, double v) { scale_to(p.program_ns, p.technology, v); },
     .load = "--rw=write --bs=128k --iodepth=32"},
    {.key = "channel_mt_per_s",
     .is_whole = false,
     .min = 20,
     .max = 10'000,
     .get = [](const Parameters& p) { return static_cast<double>(p.channel_mt_per_s); },
     .set = [](Parameters& p, double v) { p.channel_mt_per_s = whole(v); },
     .load = "--rw=randread --bs=16k --iodepth=1"},
    {.key = "lane_gb_per_s",
     .is_whole = false,
     .min = 0.02,
     .max = 64,
     .get = [](const Parameters& p) { return p.lane_gb_per_s; },
     .set = [](Parameters& p, double v) { p.lane_gb_per_s = v; },
     .load = "--rw=read --bs=1m --iodepth=32"},
    {.key = "channels",
     .is_whole = true,
     .min = 1,
     .max = 64,
     .get = [](const Parameters& p) { return static_cast<double>(p.channels); },
     .set = [](Parameters& p, double v) { p.channels = whole(v); },
     .load = "--rw=randread --bs=64k --iodepth=128"},
    {.key = "chips_per_channel",
     .is_whole = true,
     .min = 1,
     .max = 64,
     .get = [](const Parameters& p) { return static_cast<double>(p.chips_per_channel); },
     .set = [](Parameters& p, double v) { p.chips_per_channel = whole(v); },
     .load = "--rw=randread --bs=4k --iodepth=256"},
    {.key = "write_back_pages",
     .is_whole = true,
     .min = 1,
     .max = 256,
     .get = [](const Parameters& p) { return static_cast<double>(p.write_back_pages); },
     .set = [](Parameters& p, double v) { p.write_back_pages = whole(v); },
     .load = "--rw=randwrite --bs=16k --iodepth=64"},
}};

}  // namespace

std::span<const FitKnob> fit_knobs() { return kKnobs; }

KnobValues knob_values(const Parameters& parameters) {
  KnobValues values;
  for (const FitKnob& knob : kKnobs) {
    values.push_back(std::clamp(knob.get(parameters), knob.min, knob.max));
  }
  return values;
}

Parameters with_knobs(const Parameters& start, const KnobValues& values) {
  Parameters p = start;
  for (size_t i = 0; i < kKnobs.size(); ++i) kKnobs[i].set(p, values[i]);
  if (p.planes() == start.planes()) return p;
  const uint64_t blocks = start.planes() * start.blocks_per_plane;
  p.blocks_per_plane = static_cast<uint32_t>(std::max<uint64_t>(16, blocks / p.planes()));
  // Each plane needs its spare blocks, however many planes there are.
  while (flash::check(p) && p.blocks_per_plane < start.blocks_per_plane + 1024) {
    ++p.blocks_per_plane;
  }
  return p;
}

std::string fio_command(const FitKnob& knob) {
  return fmt::format(
      "fio --name={} --filename=/dev/nvme0n1 --direct=1 --ioengine=io_uring --time_based "
      "--runtime=20 --ramp_time=5 {} --output-format=json --output={}.json",
      knob.key, knob.load, knob.key);
}

}  // namespace cairn::plan
