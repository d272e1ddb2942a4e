// SPDX-License-Identifier: Apache-2.0
// Small programs for tests and benchmarks of the simulator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "env/address.h"
#include "env/env.h"

namespace cairn::sim {

// Sends back whatever it receives, on any number of connections, until stopped.
env::Program echo_server(uint16_t port);

struct EchoOptions {
  uint64_t rounds = UINT64_MAX;
  size_t size = 64;            // bytes per round
  Duration round_limit = 1_s;  // then the connection is given up
  Duration pause = 10_ms;      // before connecting again
};
struct EchoStats {
  uint64_t rounds = 0;      // answered in full and equal
  uint64_t errors = 0;      // rounds that failed
  uint64_t mismatches = 0;  // answers that differed
};
// Sends a message whose first bytes are new each time and waits for its echo, round by round;
// connects again after an error. `stats` must outlive the program.
env::Program echo_client(env::Address server, EchoOptions options, EchoStats& stats);

}  // namespace cairn::sim
