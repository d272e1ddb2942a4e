// SPDX-License-Identifier: Apache-2.0
// `cairn bench fabric`: our host and our box against the ceiling of this machine, against plain
// NVMe/TCP, at a rate, with many connections and with many targets.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "bench/report.h"
#include "bench/world_load.h"

namespace cairn::bench {

struct FabricOptions {
  WorldFactory world;  // in which the host and the box run
  int rounds = 5;
  double seconds = 0.5;
  std::vector<std::string> only;  // of fabric_loads(); empty: all
  int box_cpu = 0;
  int host_cpu = 1;
  uint64_t memory = 256_MiB;                       // of each box
  std::function<void(std::string_view)> progress;  // may be empty
};

// The names that `only` knows: kinds of load such as "read4k", with a depth such as
// "read4k_qd32", and "rate", "connections", "targets",
// "strangers".
const std::vector<std::string>& fabric_loads();

// In each round every contestant carries its load once. The report has a line for each and the
// ratios of fabric_ratios.h.
Result<Report> bench_fabric(const FabricOptions& options);

}  // namespace cairn::bench
