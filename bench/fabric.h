// SPDX-License-Identifier: Apache-2.0
// `cairn bench fabric`: our host and our box against the ceiling of this machine.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/report.h"
#include "bench/world_load.h"

namespace cairn::bench {

struct FabricOptions {
  WorldFactory world;  // in which the host and the box run
  int rounds = 5;
  double seconds = 0.5;
  std::vector<std::string> only;  // loads such as "read4k" or "read4k_qd32"; empty: all
  int box_cpu = 0;
  int host_cpu = 1;
  uint64_t memory = 256u << 20;
  std::function<void(std::string_view)> progress;  // may be empty
};

// The names that `only` knows.
const std::vector<std::string>& fabric_loads();

// Each load at each depth, carried by the bare exchange, by Cairn with both sides spinning, and by
// Cairn with both sides sleeping when they have nothing to do; and the plain stream and ping-pong.
Result<Report> bench_fabric(const FabricOptions& options);

}  // namespace cairn::bench
