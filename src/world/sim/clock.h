// SPDX-License-Identifier: Apache-2.0
// A node's clocks: functions of true time with an offset, a drift, and a wall clock that steps.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "world/sim/options.h"

namespace cairn::sim {

class Clock {
 public:
  explicit Clock(const ClockOptions& options) : options_(options) {}

  // The node's monotonic clock at true time `now`; never() stays never().
  Time local(Time now) const {
    if (now == Time::never()) return now;
    return {now.ns + options_.monotonic_offset.ns + drift(now)};
  }
  // The first true time at which the monotonic clock shows at least `local_time`.
  Time true_time(Time local_time) const {
    if (local_time == Time::never()) return local_time;
    const int64_t since = local_time.ns - options_.monotonic_offset.ns;
    if (options_.drift_ppm == 0) return {since};
    const auto scaled = static_cast<__int128>(since) * 1'000'000 / (1'000'000 + options_.drift_ppm);
    Time guess{static_cast<int64_t>(scaled) - 1};
    while (local(guess) < local_time) ++guess.ns;
    return guess;
  }
  WallTime wall(Time now) const { return {kEpochNs + now.ns + drift(now) + wall_offset().ns}; }
  void step(Duration by) { stepped_ += by; }

 private:
  static constexpr int64_t kEpochNs = 1'793'491'200'000'000'000;  // 2026-11-01 00:00 UTC

  int64_t drift(Time now) const {
    if (options_.drift_ppm == 0) return 0;
    return static_cast<int64_t>(static_cast<__int128>(now.ns) * options_.drift_ppm / 1'000'000);
  }
  Duration wall_offset() const { return options_.wall_offset + stepped_; }

  ClockOptions options_;
  Duration stepped_;
};

}  // namespace cairn::sim
