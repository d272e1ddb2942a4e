// SPDX-License-Identifier: Apache-2.0
// Governor: whether a core lets work gather before it wakes, found by trying.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace cairn::posix {

// A core that is woken for each event of a steady load pays a wake-up for little work. If it lets
// events gather for some 20 us it pays a fraction; but whoever waits for one answer before sending
// the next request (a closed loop) then only waits longer. From inside a core the two look alike,
// so the governor tries: a core that is woken often gathers for a fiftieth of a second, and
// goes on so only when that took clearly less processor time and as many bytes came in. It looks
// again from time to time, more seldom each time the answer was the same, and stops at once when
// the load goes away.
class Governor {
 public:
  // So long, and for so many events, a core gathers.
  static constexpr Duration kGathering = 20_us;
  static constexpr unsigned kEvents = 16;

  // What a core has done since it began.
  struct Usage {
    Duration cpu;
    uint64_t received = 0;  // bytes, from streams
  };

  explicit Governor(bool enabled) : enabled_(enabled) {}

  bool is_on() const { return enabled_; }
  // Whether a core that has just worked should let work gather before it looks again.
  bool gathers() const { return gathers_; }
  // The core rested, and was woken at `now`. True: a window is over, and end_window() comes next.
  bool woke(Time now) {
    ++wakes_;
    return now - began_ >= kWindow;
  }
  void end_window(Time now, const Usage& usage);

 private:
  static constexpr Duration kWindow = 20_ms;
  static constexpr Duration kFirstPause = 1_s;
  static constexpr Duration kLongestPause = 30_s;

  enum class State : uint8_t {
    kPlain,      // woken for each event
    kTrying,     // gathers to see what that brings
    kGathering,  // gathers because it paid
    kChecking,   // woken for each event, to see whether gathering still pays
  };
  struct Window {
    double wakes = 0;  // all by second
    double cpu = 0;    // seconds
    double received = 0;
  };

  Window measure(Time now, const Usage& usage) const;
  static bool is_steady(const Window& one, const Window& next);
  void enter(State state);
  void pause(Time now);
  // What gathering brought, compared with being woken for each event.
  static bool pays(const Window& gathered, const Window& plain);

  bool enabled_;
  bool gathers_ = false;
  State state_ = State::kPlain;
  uint64_t wakes_ = 0;
  Time began_;
  Usage at_begin_;
  Window before_;  // the last window, or the last of the other kind
  Time next_try_;
  Duration pause_ = kFirstPause;
};

}  // namespace cairn::posix
