// SPDX-License-Identifier: Apache-2.0
// Timers: callbacks at a time on one core, armed and disarmed in constant time without allocation.
#pragma once

#include <array>
#include <cstdint>

#include "base/list.h"
#include "base/units.h"

namespace cairn::task {

class Timers;

// One shot: armed, then fired or disarmed, then free to be armed again. Disarmed by destruction.
class Timer : public ListHook<> {
 public:
  using Fire = void (*)(Timer&);
  explicit Timer(Fire fire) : fire_(fire) {}
  inline ~Timer();

  bool is_armed() const { return service_ != nullptr; }
  Time when() const { return when_; }

  // For implementations of Timers.
  void set_armed(Timers* service, Time when) {
    service_ = service;
    when_ = when;
  }
  void fire() {
    service_ = nullptr;
    fire_(*this);
  }
  uint64_t slot = 0;  // the service's own note

 private:
  Fire fire_;
  Timers* service_ = nullptr;
  Time when_;
};

// A core's clock and what is to happen by it.
class Timers {
 public:
  // The monotonic clock. Within one turn of the run loop it may stand still.
  virtual Time now() const = 0;
  // Fires `timer` once, at `when` or as soon after as the core gets to it; a past time fires on
  // the next turn, never inside arm(). Timers of the same time fire in the order they were armed.
  virtual void arm(Timer& timer, Time when) = 0;
  // It will not fire any more; nothing happens when it is not armed.
  virtual void disarm(Timer& timer) = 0;

 protected:
  ~Timers() = default;
};

Timer::~Timer() {
  if (service_ != nullptr) service_->disarm(*this);
}

// A hierarchical wheel with ticks of 1.024 us: 8 levels of 64 slots reach past any run's end. Fires
// never early, and less than a tick late. The real worlds keep one per core.
class TimerWheel {
 public:
  explicit TimerWheel(Time start) : now_tick_(tick_of(start)) {}
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  void arm(Timer& timer, Time when, Timers* service);
  void disarm(Timer& timer);
  // Fires all that is due at `now`, earlier ones first; returns how many.
  size_t advance(Time now);
  // No timer is due before this; never() when none is armed. It may be early, never late.
  Time next() const;
  size_t armed_count() const { return armed_; }

 private:
  static constexpr int kTickBits = 10;
  static constexpr int kSlotBits = 6;
  static constexpr int kLevels = 8;
  static constexpr int kSlots = 1 << kSlotBits;
  static constexpr uint64_t kTickMax = (uint64_t{1} << (kLevels * kSlotBits)) - 1;

  // The first tick that begins at or after `when`.
  static uint64_t tick_of(Time when) {
    return when.ns <= 0 ? 0 : (static_cast<uint64_t>(when.ns) + (1U << kTickBits) - 1) >> kTickBits;
  }
  void insert(Timer& timer, uint64_t tick);
  // The earliest tick at which a slot needs attention, and its level; false when all are empty.
  bool next_slot(uint64_t& tick, int& level) const;

  std::array<std::array<List<Timer>, kSlots>, kLevels> slots_;
  std::array<uint64_t, kLevels> occupied_{};
  uint64_t now_tick_;
  size_t armed_ = 0;
};

}  // namespace cairn::task
