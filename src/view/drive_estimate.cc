// SPDX-License-Identifier: Apache-2.0
#include "view/drive_estimate.h"

#include <algorithm>

namespace cairn::view {

Duration DriveEstimate::scaled(Duration threshold, uint64_t capacity) {
  const uint64_t rate = std::clamp<uint64_t>(capacity, kJudgedRate / 64, kJudgedRate);
  return threshold * static_cast<int64_t>(kJudgedRate / 1000) / static_cast<int64_t>(rate / 1000);
}

void DriveEstimate::Delays::update(std::optional<Duration> delay, Duration low, Duration high) {
  if (!delay) {
    // Nothing waits where there is nothing: the next one is judged afresh.
    *this = {};
    return;
  }
  if (threshold == 0) threshold = high.ns;
  average.add(static_cast<uint64_t>(std::max<int64_t>(delay->ns, 0)));
  const auto now = static_cast<int64_t>(average.value());
  if (now > high.ns) {
    level = Level::kOverloaded;
    threshold = high.ns;
  } else if (now > threshold) {
    level = Level::kCongested;
    threshold = (threshold + high.ns) / 2;
  } else {
    level = now > low.ns ? Level::kNearLimit : Level::kLow;
    // It follows the delays down, so that a sudden rise is seen before it is large.
    threshold = std::max(low.ns, threshold - ((threshold - now) / 2));
  }
}

void DriveEstimate::fall(uint64_t to, uint64_t used) {
  limit_ = std::min(rate_, used);
  rate_ = to;
  hold_ = kHold;
}

void DriveEstimate::move_rate(Level level, uint64_t used) {
  const uint64_t least = std::max<uint64_t>(capacity_ / 64, 1);
  hold_ -= std::min(hold_, 1U);
  // It is all used, and was too much not long ago.
  const bool is_known = rate_ >= limit_ - (limit_ / 16) && used >= rate_ - (rate_ / 8);
  limit_ = std::min(capacity_, limit_ + (capacity_ / 1024));
  quick_ = level == Level::kLow ? std::min(quick_ + 1, kQuickMax) : 0;
  switch (level) {
    case Level::kIdle:
      limit_ = capacity_;
      rate_ += capacity_ / 8;
      break;
    case Level::kLow:
      // The longer requests are quick, the less was it the drive that was too slow.
      rate_ += is_known ? (capacity_ / 256) << (quick_ / 8) : capacity_ / 8;
      break;
    case Level::kNearLimit:
      rate_ += is_known ? 0 : capacity_ / 64;
      break;
    case Level::kCongested:
      if (hold_ == 0) fall(rate_ - (rate_ / 16), used);
      break;
    case Level::kOverloaded:
      // It does what it does: a little less lets the queue become shorter.
      if (hold_ == 0) fall(std::min(rate_, used) * 7 / 8, used);
      break;
  }
  rate_ = std::clamp(rate_, least, capacity_);
}

void DriveEstimate::move_write_cost(const Sample& sample) {
  // What it did is the best proof. It is forgotten slowly, for drives do become worse.
  write_cost_max_x10_ =
      std::min(kWriteCostMax, write_cost_max_x10_ + (write_cost_max_x10_ / 32) + 1);
  if (!sample.write_delay) {
    // Nobody can say any more that it finds writes hard.
    write_cost_x10_ = std::max(kWriteCostMin, write_cost_x10_ - 1);
    return;
  }
  const uint64_t left = capacity_ - std::min(capacity_, sample.read_bytes_per_s);
  if (sample.write_bytes_per_s > 0) {
    const uint64_t most = left * kWriteCostMin / sample.write_bytes_per_s;
    write_cost_max_x10_ =
        static_cast<uint32_t>(std::clamp<uint64_t>(most, kWriteCostMin, write_cost_max_x10_));
  }
  if (writes_.level <= Level::kLow) {
    write_cost_x10_ = std::max(kWriteCostMin, write_cost_x10_ - 5);
  } else {
    write_cost_x10_ = (write_cost_x10_ + kWriteCostMax) / 2;
  }
  write_cost_x10_ = std::min(write_cost_x10_, write_cost_max_x10_);
}

void DriveEstimate::update(const Sample& sample) {
  reads_.update(sample.read_delay, low_, high_);
  writes_.update(sample.write_delay, low_, high_);
  move_write_cost(sample);
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
