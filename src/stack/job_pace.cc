// SPDX-License-Identifier: Apache-2.0
#include "stack/job_pace.h"

#include <algorithm>

namespace cairn::drive {

namespace {

constexpr double kOldWeight = 0.7;  // of the rate so far, against that since the last look
constexpr double kDaysMax = 365;    // a longer time says nothing

}  // namespace

void JobPace::look(uint64_t done, Time now) {
  if (done < done_) {
    *this = JobPace(now, done);
    return;
  }
  const Duration passed = now - since_;
  if (passed < kApart) return;
  const double rate = static_cast<double>(done - done_) / passed.seconds();
  per_second_ = per_second_ == 0 ? rate : per_second_ * kOldWeight + rate * (1 - kOldWeight);
  since_ = now;
  done_ = done;
}

std::optional<Duration> JobPace::time_for(uint64_t left) const {
  if (left == 0) return Duration{};
  if (per_second_ <= 0) return std::nullopt;
  const double seconds = static_cast<double>(left) / per_second_;
  if (seconds > kDaysMax * 86400) return std::nullopt;
  return Duration::from_seconds(seconds);
}

}  // namespace cairn::drive
