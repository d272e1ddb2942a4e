// SPDX-License-Identifier: Apache-2.0
// DriveEstimate: what a drive can do, judged by how long its requests take, in the manner of Gimbal
// (SIGCOMM'21): a drive does not say how much it can take, but its requests wait when it is too
// much.
//
// What is seen is a window and its lag old. So a rate that fell is given that time to show what it
// does before it falls again, and one that is all used comes near what was too much the last time
// by small steps: a rate beyond what the drive does is shared by who sends most.
//
// Each kind of request has a threshold that moves between 250 and 1500 us. Delays beyond 1500 us:
// the drive is overloaded; beyond the threshold: congested; beyond 250 us: near its limit. The rate
// grows by steps while requests are quick and falls by a factor when they are slow. A written byte
// costs as much as 1 to 9 that are read: half a step less each epoch while writes are quick, half
// the way up when they are slow.
//
// A queue takes a slow drive longer: of one that reads less than kJudgedRate the thresholds are as
// much higher, so that all are judged by the same bytes that wait. And a write costs at most what
// was left of the drive by those it did: a drive at its limit that writes half of what it reads at
// most has writes that cost two, however long they take.
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
inline constexpr uint64_t kJudgedRate = 1'000'000'000;  // bytes in a second
inline constexpr uint32_t kWriteCostMin = 10;           // in tenths
inline constexpr uint32_t kWriteCostMax = 90;

class DriveEstimate {
 public:
  explicit DriveEstimate(const DriveProfile& profile)
      : capacity_(profile.bytes_per_s),
        low_(scaled(kDelayLow, capacity_)),
        high_(scaled(kDelayHigh, capacity_)),
        rate_(profile.bytes_per_s) {}

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
    int64_t threshold = 0;  // 0: nothing was judged yet
    Level level = Level::kIdle;
    void update(std::optional<Duration> delay, Duration low, Duration high);
  };

  static constexpr uint32_t kQuickMax = 40;
  // As many epochs as what is seen is old.
  static constexpr uint32_t kHold = static_cast<uint32_t>((kWindow + kLag).ns / kEpoch.ns);

  static Duration scaled(Duration threshold, uint64_t capacity);
  void fall(uint64_t to, uint64_t used);
  void move_rate(Level level, uint64_t used);
  void move_write_cost(const Sample& sample);

  uint64_t capacity_;
  Duration low_;
  Duration high_;
  uint64_t rate_;
  uint32_t hold_ = 0;                            // epochs until the rate may fall again
  uint32_t quick_ = 0;                           // epochs in a row in which requests were quick
  uint64_t limit_ = capacity_;                   // what was too much the last time
  uint32_t write_cost_max_x10_ = kWriteCostMax;  // by what was written lately
  uint32_t write_cost_x10_ = kWriteCostMin;
  Delays reads_;
  Delays writes_;
  DriveView view_{.rate = capacity_, .headroom = capacity_};
};

}  // namespace cairn::view
