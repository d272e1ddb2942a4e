// SPDX-License-Identifier: Apache-2.0
// A simulated echo cluster from its seed to its verdict: the smallest run with workload, faults,
// checks and a healed end.
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
  bool faults = false;       // rough network, crashes, partitions, pauses, all drawn from the seed
};

struct EchoRunResult {
  uint64_t rounds = 0;      // echoes that came back whole
  uint64_t errors = 0;      // those that did not; expected with faults
  uint64_t mismatches = 0;  // those that came back different: never right
  uint64_t faults = 0;      // done to nodes and links, besides those of single segments
  uint64_t events = 0;
  Duration simulated;
  uint64_t trace_hash = 0;
  // Empty when all is well: no mismatch, and after healing every client got further. Otherwise what
  // went wrong, the seed and the last events.
  std::string failure;
};

EchoRunResult run_echo(const EchoRunOptions& options);

}  // namespace cairn::apps
