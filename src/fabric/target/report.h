// SPDX-License-Identifier: Apache-2.0
// TargetReport: what a target's connections have done, for people and metrics.
#pragma once

#include <cstdint>
#include <vector>

#include "env/address.h"
#include "fabric/target/lane_book.h"

namespace cairn::fabric {

struct TargetReport {
  std::vector<env::Address> listeners;  // by number
  uint64_t open = 0;                    // connections
  uint64_t refused = 0;                 // they found no place
  LaneBook::Accounts totals;            // of all connections so far
  std::vector<TargetLane> lanes;        // the busiest, by messages sent; then by peer
};

}  // namespace cairn::fabric
