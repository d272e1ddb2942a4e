// SPDX-License-Identifier: Apache-2.0
#include "view/drive_estimate.h"

#include <algorithm>

namespace cairn::view {

void DriveEstimate::Delays::update(std::optional<Duration> delay) {
  if (!delay) {
    // Nothing waits where there is nothing: the next one is judged afresh.
    *this = {};
    return;
  }
  average.add(static_cast<uint64_t>(std::max<int64_t>(delay->ns, 0)));
  const auto now = static_cast<int64_t>(average.value());
  if (now > kDelayHigh.ns) {
    level = Level::kOverloaded;
    threshold = kDelayHigh.ns;
  } else if (now > threshold) {
    level = Level::kCongested;
    threshold = (threshold + kDelayHigh.ns) / 2;
  } else {
    level = now > kDelayLow.ns ? Level::kNearLimit : Level::kLow;
    // It follows the delays down, so that a sudden rise is seen before it is large.
    threshold = std::max(kDelayLow.ns, threshold - ((threshold - now) / 2));
  }
}

void DriveEstimate::move_rate(Level level, uint64_t used) {
  const uint64_t least = std::max<uint64_t>(capacity_ / 64, 1);
  switch (level) {
    case Level::kIdle:
    case Level::kLow:
      rate_ += capacity_ / 8;
      break;
    case Level::kNearLimit:
      rate_ += capacity_ / 64;
      break;
    case Level::kCongested:
      rate_ -= rate_ / 16;
      break;
    case Level::kOverloaded:
      // It does what it does: three quarters of that let the queue become shorter, less only
      // leave it idle.
      rate_ = std::min(rate_, used);
      rate_ = std::max(rate_ - (rate_ / 16), used * 3 / 4);
      break;
  }
  rate_ = std::clamp(rate_, least, capacity_);
}

void DriveEstimate::update(const Sample& sample) {
  reads_.update(sample.read_delay);
  writes_.update(sample.write_delay);
  if (sample.write_delay) {
    if (writes_.level <= Level::kLow) {
      write_cost_x10_ = std::max(kWriteCostMin, write_cost_x10_ - 5);
    } else {
      write_cost_x10_ = (write_cost_x10_ + kWriteCostMax) / 2;
    }
  }
  const uint64_t weighted =
      sample.read_bytes_per_s + (sample.write_bytes_per_s * write_cost_x10_ / kWriteCostMin);
  const uint64_t used = std::min(weighted, capacity_);
  const Level level = std::max(reads_.level, writes_.level);
  move_rate(level, used);
  const uint64_t headroom = rate_ > used ? rate_ - used : 0;
  view_ = {
      .read_delay = {static_cast<int64_t>(reads_.average.value())},
      .write_delay = {static_cast<int64_t>(writes_.average.value())},
      .rate = rate_,
      .used = used,
      .headroom = headroom,
      .write_cost_x10 = write_cost_x10_,
      .busy = used + headroom == 0 ? 0 : static_cast<int32_t>(used * 1000 / (used + headroom)),
      .fragmentation = static_cast<int32_t>((write_cost_x10_ - kWriteCostMin) * 1000 /
                                            (kWriteCostMax - kWriteCostMin)),
      // Claims of traffic alone do not congest a drive whose requests are quick.
      .is_congested = level >= Level::kNearLimit && headroom <= capacity_ / 20,
  };
}

}  // namespace cairn::view
