// SPDX-License-Identifier: Apache-2.0
#include "world/posix/governor.h"

#include <algorithm>
#include <utility>

namespace cairn::posix {

namespace {

// Below the first a wake-up for each event is cheap enough; below the second the load has gone.
constexpr double kOften = 12'000;
constexpr double kSeldom = 4'000;
// Windows whose bytes differ by more do not belong to one load.
constexpr double kSteady = 0.8;
// A window that lasted so much longer than it should was mostly sleep.
constexpr double kLongest = 0.2;
// What has to be saved, and what may be lost, for gathering to pay.
constexpr double kCpuMax = 0.75;
constexpr double kRateMin = 0.95;

double seconds(Duration time) { return static_cast<double>(time.ns) / 1e9; }

}  // namespace

Governor::Window Governor::measure(Time now, const Usage& usage) const {
  const double time = seconds(now - began_);
  if (time > kLongest) return {};
  return {.wakes = static_cast<double>(wakes_) / time,
          .cpu = seconds(usage.cpu - at_begin_.cpu) / time,
          .received = static_cast<double>(usage.received - at_begin_.received) / time};
}

bool Governor::pays(const Window& gathered, const Window& plain) {
  return gathered.received > 0 && gathered.received >= kRateMin * plain.received &&
         gathered.cpu < kCpuMax * plain.cpu;
}

// Whether a load did not begin or end between the two.
bool Governor::is_steady(const Window& one, const Window& next) {
  return next.received > 0 && next.received > kSteady * one.received &&
         one.received > kSteady * next.received;
}

void Governor::enter(State state) {
  state_ = state;
  gathers_ = state == State::kTrying || state == State::kGathering;
}

void Governor::pause(Time now) {
  next_try_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void Governor::end_window(Time now, const Usage& usage) {
  const Window window = measure(now, usage);
  began_ = now;
  wakes_ = 0;
  at_begin_ = usage;
  if (!enabled_) return;
  // The load has gone, or has changed so much that what was learned says nothing of what comes.
  if (window.wakes < kSeldom) {
    enter(State::kPlain);
    pause_ = kFirstPause;
    next_try_ = now;
    return;
  }
  switch (state_) {
    case State::kPlain:
      if (window.wakes >= kOften && is_steady(before_, window) && now >= next_try_) {
        enter(State::kTrying);
      }
      before_ = window;
      return;
    case State::kTrying:
      if (pays(window, before_)) {
        pause_ = kFirstPause;
        enter(State::kGathering);
      } else {
        enter(State::kPlain);
      }
      return pause(now);
    case State::kGathering:
      if (now < next_try_) return;
      before_ = window;
      return enter(State::kChecking);
    case State::kChecking:
      if (pays(before_, window)) {
        enter(State::kGathering);
      } else {
        pause_ = kFirstPause;
        enter(State::kPlain);
      }
      return pause(now);
  }
  std::unreachable();
}

}  // namespace cairn::posix
