// SPDX-License-Identifier: Apache-2.0
// The rate of one DCQCN flow. Its timers are not events: what they did is worked out when somebody
// asks.
#pragma once

#include <cstdint>

#include "model/net/parameters.h"

namespace cairn::net {

class Dcqcn {
 public:
  Dcqcn() = default;
  explicit Dcqcn(uint64_t line_bits_per_s)
      : rate_(line_bits_per_s), target_(line_bits_per_s), line_(line_bits_per_s) {}

  // The rate at `now`, in bits per second. Times must not go back. A timer that fires just now and
  // was set after `since`, when the event that asks was scheduled, has not fired yet.
  uint64_t rate(Picos now, Picos since, const DcqcnParameters& p) {
    if (now >= next_timer_) run_timers(now, since, p);
    return rate_;
  }
  // A congestion notification arrived.
  void notify(Picos now, Picos since, const DcqcnParameters& p);

  uint64_t target() const { return target_; }
  double alpha() const { return alpha_; }
  uint32_t stage() const { return stage_; }

 private:
  void run_timers(Picos now, Picos since, const DcqcnParameters& p);
  void decrease(const DcqcnParameters& p);
  void increase(const DcqcnParameters& p);

  uint64_t rate_ = 0;
  uint64_t target_ = 0;
  uint64_t line_ = 0;
  double alpha_ = 1;
  Picos next_timer_ = kNever;  // the earliest of the three
  Picos alpha_at_ = kNever;
  Picos decrease_at_ = kNever;
  Picos increase_at_ = kNever;
  uint32_t stage_ = 0;
  bool alpha_notified_ = false;
  bool decrease_notified_ = false;
};

}  // namespace cairn::net
