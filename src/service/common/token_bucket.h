// SPDX-License-Identifier: Apache-2.0
// TokenBucket: a rate with a burst, exact to the nanosecond.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace cairn::drive {

// Fills with `rate` tokens per second up to `burst`, and starts full. Who wants more than the burst
// gets it from a full bucket and leaves a debt, so that the long-run rate holds for any size.
class TokenBucket {
 public:
  // A rate of 0 limits nothing. `burst` is at least 1.
  TokenBucket(uint64_t rate, uint64_t burst, Time now)
      : rate_(rate), full_(Amount{burst} * kSecond), level_(full_), filled_(now) {}

  // When so many tokens can be taken, if nobody takes any before: now or later.
  Time when(uint64_t tokens, Time now) const {
    if (rate_ == 0) return now;
    const Amount lack = std::min(Amount{tokens} * kSecond, full_) - level_at(now);
    if (lack <= 0) return now;
    return now + Duration{static_cast<int64_t>((lack + rate_ - 1) / rate_)};
  }
  void take(uint64_t tokens, Time now) {
    if (rate_ == 0) return;
    level_ = level_at(now) - Amount{tokens} * kSecond;
    filled_ = now;
  }

 private:
  using Amount = __int128;  // of tokens, in billionths
  static constexpr Amount kSecond = 1'000'000'000;

  Amount level_at(Time now) const {
    return std::min(full_, level_ + Amount{(now - filled_).ns} * rate_);
  }

  Amount rate_;
  Amount full_;
  Amount level_;
  Time filled_;
};

}  // namespace cairn::drive
