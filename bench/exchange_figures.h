// SPDX-License-Identifier: Apache-2.0
// What a pair of processes, a client and a server, did in one run, and what each spent on it.
#pragma once

#include <cstdint>

#include "base/histogram.h"

namespace cairn::bench {

// Of one side, for each exchange.
struct SideCost {
  double cpu_us = 0;
  double system_calls = 0;
  double sends = 0;  // of streams; 0 where nobody counts them
  // Parts of cpu_us, where they were asked for: outside the kernel, and within calls that send or
  // receive.
  double user_us = 0;
  double sending_us = 0;
  double receiving_us = 0;
};

struct ExchangeFigures {
  double per_second = 0;
  uint64_t unsent = 0;     // at a given rate: those that were due and had no room
  uint32_t strangers = 0;  // hostile connections that were up when it ended
  Histogram latency_ns;
  SideCost server;
  SideCost client;

  double cpu_us() const { return server.cpu_us + client.cpu_us; }
  double sends() const { return server.sends + client.sends; }
  // Processors busy with it, on both sides together.
  double cores() const { return cpu_us() * per_second / 1e6; }
};

}  // namespace cairn::bench
