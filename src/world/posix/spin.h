// SPDX-License-Identifier: Apache-2.0
// Spin: how long a core looks for more work before it sleeps.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace cairn::posix {

// Sleeping costs a wake-up, spinning costs the processor. A core that finds no work spins for a
// while; the while grows when work comes soon after it fell asleep, and shrinks to nothing when it
// does not, so that an idle core costs nothing.
class Spin {
 public:
  // Never longer than `limit`. Zero: sleep at once; max: never sleep.
  explicit Spin(Duration limit) : limit_(limit), length_(limit) {}

  bool is_on() const { return limit_ > Duration{0}; }

  // A turn of the core found work, or none. True: turn again without sleeping.
  bool goes_on(bool worked, Time now) {
    if (limit_ == Duration::max()) return true;
    if (worked || !idle_) {
      idle_ = !worked;
      idle_since_ = now;
    }
    return length_ > Duration{0} && now - idle_since_ < length_;
  }
  // It slept, and something woke it.
  void woke(Time slept_at, Time now) {
    const bool was_short = now - slept_at < limit_;
    length_ = was_short ? std::min(limit_, std::max(length_ * 2, limit_ / 8)) : length_ / 2;
    if (length_ < limit_ / 64) length_ = Duration{0};
    idle_ = false;
  }
  Duration length() const { return length_; }

 private:
  Duration limit_;
  Duration length_;
  bool idle_ = false;
  Time idle_since_;
};

}  // namespace cairn::posix
