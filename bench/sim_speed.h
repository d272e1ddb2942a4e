// SPDX-License-Identifier: Apache-2.0
// How fast the simulator is: a cluster of echo clients and one server, without faults.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace cairn::bench {

struct SimLoad {
  double seconds = 1;  // real ones; the run ends with the slice that passes them
  uint64_t seed = 1;
  int clients = 8;
  uint32_t message_size = 4_KiB;
};

struct SimSpeed {
  double events_per_second = 0;
  double simulated_seconds_per_second = 0;
  uint64_t rounds = 0;  // echoes, of all clients
};

SimSpeed sim_echo_speed(const SimLoad& load);

}  // namespace cairn::bench
