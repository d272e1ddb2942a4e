// SPDX-License-Identifier: Apache-2.0
#include "task/timer.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace cairn::task {

// A timer sits at the level of the highest bit group in which its tick differs from now's, in the
// slot that group names. When now reaches the start of a slot above level 0, its timers move down.

void TimerWheel::insert(Timer& timer, uint64_t tick) {
  const uint64_t differing = tick ^ now_tick_;
  const int level =
      differing == 0
          ? 0
          : std::min<int>(static_cast<int>(std::bit_width(differing) - 1) / kSlotBits, kLevels - 1);
  const uint64_t slot = (tick >> (level * kSlotBits)) & (kSlots - 1);
  timer.slot = static_cast<uint64_t>(level) * kSlots + slot;
  slots_[level][slot].push_back(timer);
  occupied_[level] |= uint64_t{1} << slot;
}

void TimerWheel::arm(Timer& timer, Time when, Timers* service) {
  CHECK(!timer.is_armed(), "a timer is armed once at a time");
  timer.set_armed(service, when);
  // A due timer goes to the next tick: arm() never fires, and advance() never revisits a tick.
  insert(timer, std::clamp(tick_of(when), now_tick_ + 1, kTickMax));
  ++armed_;
}

void TimerWheel::disarm(Timer& timer) {
  if (!timer.is_armed()) return;
  timer.unlink();
  timer.set_armed(nullptr, {});
  const uint64_t level = timer.slot / kSlots;
  const uint64_t slot = timer.slot % kSlots;
  if (slots_[level][slot].empty()) occupied_[level] &= ~(uint64_t{1} << slot);
  --armed_;
}

bool TimerWheel::next_slot(uint64_t& tick, int& level) const {
  for (level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    // All of a level's timers lie in now's own group of the level above and ahead of now.
    const int shift = level * kSlotBits;
    const auto slot = static_cast<uint64_t>(std::countr_zero(occupied_[level]));
    const uint64_t group = now_tick_ >> shift >> kSlotBits << kSlotBits;
    tick = (group | slot) << shift;
    return true;
  }
  return false;
}

size_t TimerWheel::advance(Time now) {
  const uint64_t target = now.ns <= 0 ? 0 : static_cast<uint64_t>(now.ns) >> kTickBits;
  size_t fired = 0;
  uint64_t tick = 0;
  int level = 0;
  while (next_slot(tick, level) && tick <= target) {
    now_tick_ = std::max(now_tick_, tick);
    const uint64_t slot = (tick >> (level * kSlotBits)) & (kSlots - 1);
    List<Timer>& due = slots_[level][slot];
    occupied_[level] &= ~(uint64_t{1} << slot);
    if (level > 0) {
      while (Timer* timer = due.pop_front()) {
        insert(*timer, std::clamp(tick_of(timer->when()), tick, kTickMax));
      }
      continue;
    }
    while (Timer* timer = due.pop_front()) {
      --armed_;
      ++fired;
      timer->fire();
    }
  }
  now_tick_ = std::max(now_tick_, target);
  return fired;
}

Time TimerWheel::next() const {
  uint64_t tick = 0;
  int level = 0;
  if (!next_slot(tick, level)) return Time::never();
  return Time{static_cast<int64_t>(tick << kTickBits)};
}

}  // namespace cairn::task
