// SPDX-License-Identifier: Apache-2.0
// Nap: how long a core under steady load sleeps at a time.
#pragma once

#include "base/units.h"

namespace cairn::posix {

// How a core that is woken often, for little each time, saves wake-ups. It sleeps for a fixed
// while instead, and finds all that came meanwhile: less processor time, more latency. A core that
// is woken seldom, or finds nothing, waits for the next event as ever.
class Nap {
 public:
  // Zero: never.
  explicit Nap(Duration length) : length_(length) {}

  bool is_on() const { return length_ > Duration{0}; }
  Duration length() const { return length_; }
  // Whether a core that is about to wait should nap instead. `worked`: since the last time.
  bool is_due(bool worked) const { return length_ > Duration{0} && often_ && worked; }
  // It waited for an event for so long.
  void waited(Duration time) { often_ = time < length_; }
  // It napped.
  void napped(bool found_work) { often_ = found_work; }

 private:
  Duration length_;
  bool often_ = false;
};

}  // namespace cairn::posix
