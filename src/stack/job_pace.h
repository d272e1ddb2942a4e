// SPDX-License-Identifier: Apache-2.0
// JobPace: how fast a job goes on, and so how long it still takes.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace cairn::drive {

// A mean over the last looks, in which the newer ones count for more. A look that comes less than
// kApart after the one before changes nothing, so looks may come at any rate.
class JobPace {
 public:
  JobPace(Time since, uint64_t done) : since_(since), done_(done) {}

  // So much is done now. Less than before: it has begun again.
  void look(uint64_t done, Time now);
  // None: it does not go on, or is new.
  std::optional<Duration> time_for(uint64_t left) const;

  static constexpr Duration kApart = 500_ms;

 private:
  Time since_;
  uint64_t done_;
  double per_second_ = 0;
};

}  // namespace cairn::drive
