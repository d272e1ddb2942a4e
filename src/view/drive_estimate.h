// SPDX-License-Identifier: Apache-2.0
// DriveEstimate: what a drive can do, judged by how long its requests take, in the manner of Gimbal
// (SIGCOMM'21): a drive does not say how much it can take, but its requests wait when it is too
// much.
//
// Each kind of request has a threshold that moves between 250 and 1500 us. Delays beyond 1500 us:
// the drive is overloaded; beyond the threshold: congested; beyond 250 us: near its limit. The rate
// grows by steps while requests are quick and falls by a factor when they are slow. A written byte
// costs as much as 1 to 9 that are read: half a step less each epoch while writes are quick, half
// the way up when they are slow.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "view/sliding.h"
#include "view/types.h"
#include "view/view.h"

namespace cairn::view {

inline constexpr Duration kEpoch = 50_ms;
inline constexpr Duration kDelayLow = 250_us;
inline constexpr Duration kDelayHigh = 1500_us;
inline constexpr uint32_t kWriteCostMin = 10;  // in tenths
inline constexpr uint32_t kWriteCostMax = 90;

class DriveEstimate {
 public:
  explicit DriveEstimate(const DriveProfile& profile)
      : capacity_(profile.bytes_per_s), rate_(profile.bytes_per_s) {}

  // What was seen of it in the window. Of what there was none there is no delay.
  struct Sample {
    uint64_t read_bytes_per_s = 0;
    uint64_t write_bytes_per_s = 0;
    std::optional<Duration> read_delay;
    std::optional<Duration> write_delay;
  };
  // Once in an epoch.
  void update(const Sample& sample);
  const DriveView& view() const { return view_; }

 private:
  enum class Level : uint8_t { kIdle, kLow, kNearLimit, kCongested, kOverloaded };
  struct Delays {
    Ewma average;
    int64_t threshold = kDelayHigh.ns;
    Level level = Level::kIdle;
    void update(std::optional<Duration> delay);
  };

  void move_rate(Level level, uint64_t used);

  uint64_t capacity_;
  uint64_t rate_;
  uint32_t write_cost_x10_ = kWriteCostMin;
  Delays reads_;
  Delays writes_;
  DriveView view_{.rate = capacity_, .headroom = capacity_};
};

}  // namespace cairn::view
