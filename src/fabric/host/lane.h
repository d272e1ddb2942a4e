// SPDX-License-Identifier: Apache-2.0
// HostLane: a queue of a host as it is at the moment, for people and metrics.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "env/address.h"
#include "fabric/wire/doorbell.h"
#include "fabric/wire/lane_traffic.h"

namespace cairn::fabric {

struct HostLane {
  CoreId core{};
  env::Address address;   // of the target
  uint16_t queue_id = 0;  // 0: the admin queue
  uint16_t depth = 0;
  uint32_t in_flight = 0;
  DoorbellOptions doorbell;
  LaneTraffic traffic;
};

}  // namespace cairn::fabric
