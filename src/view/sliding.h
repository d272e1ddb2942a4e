// SPDX-License-Identifier: Apache-2.0
// Sliding: sums over a window of 200 ms, of what arrives late and in any order.
//
// What is told carries the time when it happened, and agents tell it in batches, up to 100 ms
// later, and the batches need their time. So the window ends 125 ms ago: by then all of it has been
// told. What is older than the window when it arrives is not counted.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace cairn::view {

inline constexpr Duration kSlot = 25_ms;
inline constexpr Duration kWindow = 200_ms;
inline constexpr Duration kLag = 125_ms;  // as long as batches wait, and a slot for their way

// Index of the slot that a time lies in.
constexpr int64_t slot_of(Time time) { return time.ns / kSlot.ns; }

// Sum has += and is zero when it is new. Times are not negative.
template <class Sum>
class Sliding {
 public:
  static constexpr int64_t kWindowSlots = kWindow.ns / kSlot.ns;
  static constexpr int64_t kLagSlots = kLag.ns / kSlot.ns;
  static constexpr int64_t kSlots = kWindowSlots + kLagSlots + 1;  // the one that is filling up

  // Whether something that happened then still counts.
  static bool is_in_time(Time stamp, Time now) { return slot_of(stamp) > slot_of(now) - kSlots; }

  // What is later than now counts as now; what is not in time is left out.
  void add(Time stamp, Time now, const Sum& what) {
    const int64_t index = std::min(slot_of(stamp), slot_of(now));
    if (index <= slot_of(now) - kSlots) return;
    Slot& slot = slots_[static_cast<size_t>(index % kSlots)];
    if (slot.index > index) return;  // the clock went back
    if (slot.index != index) slot = {.index = index, .sum = {}};
    slot.sum += what;
  }
  // Over the window.
  Sum current(Time now) const { return sum(now, kLagSlots + 1, kWindowSlots); }
  // Over as long a time that ends now.
  Sum newest(Time now) const { return sum(now, 0, kWindowSlots); }
  // Nothing that could still count is in it.
  bool is_over(Time now) const {
    return std::ranges::all_of(
        slots_, [&](const Slot& slot) { return slot.index <= slot_of(now) - kSlots; });
  }

 private:
  struct Slot {
    int64_t index = -kSlots;
    Sum sum{};
  };
  Sum sum(Time now, int64_t skipped, int64_t count) const {
    Sum total{};
    const int64_t newest = slot_of(now) - skipped;
    for (const Slot& slot : slots_) {
      if (slot.index <= newest && slot.index > newest - count) total += slot.sum;
    }
    return total;
  }

  std::array<Slot, kSlots> slots_{};
};

// A number of a window in a second.
constexpr uint64_t per_second(uint64_t of_window) {
  return of_window * static_cast<uint64_t>((1_s).ns / kWindow.ns);
}

// An exponentially weighted moving average: a new value counts 0.3. In whole numbers, so that it is
// the same on every processor.
class Ewma {
 public:
  void add(uint64_t value) {
    scaled_ = is_empty_ ? value * kScale : ((scaled_ * 7) + (value * kScale * 3)) / 10;
    is_empty_ = false;
  }
  uint64_t value() const { return scaled_ / kScale; }
  void clear() { *this = {}; }

 private:
  static constexpr uint64_t kScale = 16;  // what is cut off is less than 1
  uint64_t scaled_ = 0;
  bool is_empty_ = true;
};

}  // namespace cairn::view
