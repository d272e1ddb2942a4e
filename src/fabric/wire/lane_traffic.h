// SPDX-License-Identifier: Apache-2.0
// LaneTraffic: what a connection has sent and received so far.
#pragma once

#include <cstdint>

#include "fabric/wire/doorbell.h"
#include "stream/receiver.h"

namespace cairn::fabric {

struct LaneTraffic {
  LaneCounters out;
  stream::ReceiveCounters in;

  void add(const LaneTraffic& other) {
    out.add(other.out);
    in.add(other.in);
  }
};

}  // namespace cairn::fabric
