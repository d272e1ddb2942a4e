// SPDX-License-Identifier: Apache-2.0
// Where the time of one core goes: the columns of the paper's Table 2 as far as a process can see
// them of itself.
#pragma once

#include "bench/exchange_figures.h"

namespace cairn::bench::i10 {

// In percent of the core.
struct Components {
  double application = 0;  // the load: makes requests, takes answers
  double block = 0;        // ours outside the kernel: drive, commands, PDUs, tasks
  double net_tx = 0;       // in calls that send; over loopback they also take the peer's packets
  double net_rx = 0;       // in calls that receive
  double other = 0;        // the rest of the kernel's: waiting, waking, timers, interrupts
  double idle = 0;
};

// Of one side that did `per_second` operations and spent `cost` on each, `application_us` of it
// (0: the side has none) in the load. Parts are never below 0: they are measured apart from each
// other, and the split of user and system time is the kernel's estimate.
Components components_of(const SideCost& cost, double per_second, double application_us);

}  // namespace cairn::bench::i10
