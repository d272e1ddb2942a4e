// SPDX-License-Identifier: Apache-2.0
#include "model/net/dcqcn.h"

#include <algorithm>

#include "base/portable_math.h"

namespace cairn::net {

namespace {

// More steps than this at once are taken by one power.
constexpr Picos kStepsOneByOne = 1024;

}  // namespace

void Dcqcn::notify(Picos now, Picos since, const DcqcnParameters& p) {
  if (now >= next_timer_) run_timers(now, since, p);
  decrease_notified_ = true;
  if (alpha_at_ != kNever) {
    alpha_notified_ = true;
    return;
  }
  // The first: the timers start here, the check for a decrease just after the first alpha.
  alpha_ = 1;
  alpha_at_ = now + p.alpha_interval;
  decrease_at_ = now + p.decrease_interval + kNanosecond;
  rate_ = static_cast<uint64_t>(static_cast<double>(rate_) * p.rate_on_first_mark);
  target_ = rate_;
  next_timer_ = std::min(alpha_at_, decrease_at_);
}

void Dcqcn::run_timers(Picos now, Picos since, const DcqcnParameters& p) {
  const auto fired = [&](Picos at, Picos interval) {
    return at < now || (at == now && at - interval <= since);
  };
  // Of timers that fire together the one with the longest period was set first.
  const bool increase_first = p.increase_interval > p.decrease_interval;
  for (;;) {
    const Picos rate_at = std::min(decrease_at_, increase_at_);
    if (alpha_at_ <= rate_at) {
      if (!fired(alpha_at_, p.alpha_interval)) break;
      alpha_ *= 1 - p.gain;
      if (alpha_notified_) alpha_ += p.gain;
      alpha_notified_ = false;
      alpha_at_ += p.alpha_interval;
      const Picos idle = (std::min(now, rate_at) - alpha_at_) / p.alpha_interval;
      if (idle > kStepsOneByOne) {
        alpha_ *= whole_power(1 - p.gain, static_cast<uint64_t>(idle));
        alpha_at_ += idle * p.alpha_interval;
      }
    } else if (increase_at_ < decrease_at_ || (increase_at_ == decrease_at_ && increase_first)) {
      if (!fired(increase_at_, p.increase_interval)) break;
      increase_at_ += p.increase_interval;
      increase(p);
    } else {
      if (!fired(decrease_at_, p.decrease_interval)) break;
      if (decrease_notified_) {
        decrease(p);
        increase_at_ = decrease_at_ + p.increase_interval;
      }
      decrease_at_ += p.decrease_interval;
    }
  }
  next_timer_ = std::min({alpha_at_, decrease_at_, increase_at_});
}

void Dcqcn::decrease(const DcqcnParameters& p) {
  if (p.clamp_target || stage_ != 0) target_ = rate_;
  rate_ = std::max(p.min_bits_per_s,
                   static_cast<uint64_t>(static_cast<double>(rate_) * (1 - alpha_ / 2)));
  stage_ = 0;
  decrease_notified_ = false;
}

// Fast recovery, then additive, then hyper increase.
void Dcqcn::increase(const DcqcnParameters& p) {
  if (stage_ >= p.fast_recovery_stages) {
    target_ += stage_ == p.fast_recovery_stages ? p.additive_bits_per_s : p.hyper_bits_per_s;
    target_ = std::min(target_, line_);
  }
  rate_ = rate_ / 2 + target_ / 2;
  ++stage_;
}

}  // namespace cairn::net
