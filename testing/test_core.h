// SPDX-License-Identifier: Apache-2.0
// A core for unit tests: a ready queue and a clock that moves when told.
#pragma once

#include "task/ready.h"
#include "task/timer.h"

namespace cairn::task {

class TestCore final : public Timers {
 public:
  TestCore() : wheel_(Time{0}), scope_(ready_) {}

  Time now() const override { return now_; }
  void arm(Timer& timer, Time when) override { wheel_.arm(timer, when, this); }
  void disarm(Timer& timer) override { wheel_.disarm(timer); }

  // Runs all that is ready; returns how much ran.
  size_t run() { return ready_.run(SIZE_MAX); }
  // Moves the clock, firing timers and running what they wake.
  void advance(Duration by) {
    const Time end = now_ + by;
    while (wheel_.next() <= end) {
      now_ = wheel_.next();
      wheel_.advance(now_);
      run();
    }
    now_ = end;
    run();
  }
  ReadyQueue& ready() { return ready_; }

 private:
  ReadyQueue ready_;
  TimerWheel wheel_;
  Time now_;
  ReadyQueue::Scope scope_;
};

}  // namespace cairn::task
