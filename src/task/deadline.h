// SPDX-License-Identifier: Apache-2.0
// Deadlines and sleeping, both on a core's Timers.
#pragma once

#include "base/units.h"
#include "task/cancel.h"
#include "task/operation.h"
#include "task/timer.h"

namespace cairn::task {

// While in scope: operations given token() end with kTimedOut once `when` has passed.
//
//   Deadline deadline(env, env.now() + 5_s, stop);
//   auto read = co_await stream.read(bytes, deadline.token());
class Deadline {
 public:
  // Also requested when `parent` is, with the parent's reason.
  Deadline(Timers& timers, Time when, CancelToken parent = {})
      : source_(parent), timer_(&Deadline::on_time) {
    timer_.source = &source_;
    if (when != Time::never() && !source_.requested()) timers.arm(timer_, when);
  }

  CancelToken token() { return source_.token(); }
  bool expired() const { return source_.requested() && source_.reason() == Errc::kTimedOut; }

 private:
  struct SourceTimer : Timer {
    using Timer::Timer;
    CancelSource* source = nullptr;
  };
  static void on_time(Timer& timer) {
    static_cast<SourceTimer&>(timer).source->request(Errc::kTimedOut);
  }

  CancelSource source_;
  SourceTimer timer_;
};

class Sleep : public Operation<void> {
 public:
  Sleep(Timers& timers, Time when, CancelToken token)
      : Operation(token), timers_(timers), when_(when), timer_(&Sleep::on_time) {
    timer_.sleep = this;
  }

 private:
  struct SleepTimer : Timer {
    using Timer::Timer;
    Sleep* sleep = nullptr;
  };
  void start() override { timers_.arm(timer_, when_); }
  void cancel() override {
    timers_.disarm(timer_);
    complete(cancelled());
  }
  static void on_time(Timer& timer) { static_cast<SleepTimer&>(timer).sleep->complete({}); }

  Timers& timers_;
  Time when_;
  SleepTimer timer_;
};

// Done at `when`, or after the given time. kCancelled, kTimedOut: by the token, earlier.
inline Sleep sleep_until(Timers& timers, Time when, CancelToken token = {}) {
  return Sleep(timers, when, token);
}
inline Sleep sleep_for(Timers& timers, Duration duration, CancelToken token = {}) {
  return Sleep(timers, timers.now() + duration, token);
}

}  // namespace cairn::task
