// SPDX-License-Identifier: Apache-2.0
// A simulated echo cluster from its seed to its verdict.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace cairn::apps {

struct EchoRunOptions {
  uint64_t seed = 1;
  int clients = 3;
  uint32_t message_size = 4_KiB;
  Duration duration = 10_s;  // simulated, before the healed end
  bool faults = false;       // of the network, its links and the server, drawn from the seed
};

struct EchoRunResult {
  uint64_t rounds = 0;      // echoes that came back whole
  uint64_t errors = 0;      // those that did not; expected with faults
  uint64_t mismatches = 0;  // those that came back different: never right
  uint64_t faults = 0;      // planned ones; those of single segments are not counted
  uint64_t events = 0;
  Duration simulated;
  uint64_t trace_hash = 0;
  // Empty when all is well: no mismatch, after healing every client got further, and all programs
  // ended when stopped. Otherwise what went wrong, the faults, the seed and the last events.
  std::string failure;
};

EchoRunResult run_echo(const EchoRunOptions& options);

}  // namespace cairn::apps
