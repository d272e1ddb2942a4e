// SPDX-License-Identifier: Apache-2.0
// How fast the network model is, in processor time of one core.
#pragma once

#include <functional>
#include <string_view>

#include "bench/report.h"

namespace cairn::bench {

struct NetSpeedOptions {
  int rounds = 3;
  std::function<void(std::string_view)> progress;
};

// net_clos256_pkts_per_s: data packets per processor second when every one of 256 hosts of a Clos
// network sends 1 MB to another, with PAUSE and DCQCN; also against what the HPCC reference needed
// for such a load on a machine of this kind. net_fluid_flows_per_s: flows of that network as rates.
void bench_net(const NetSpeedOptions& options, Report& report);

}  // namespace cairn::bench
