// SPDX-License-Identifier: Apache-2.0
// The same job on the same modelled drive, by the clock of this machine and by the simulator's.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "bench/report.h"
#include "bench/world_load.h"
#include "model/flash/parameters.h"

namespace cairn::bench {

struct LiveDriveOptions {
  int rounds = 3;
  double seconds = 1;  // of one job
  WorldFactory world;
  std::shared_ptr<const flash::Parameters> drive;
  std::function<void(std::string_view)> progress;
};

// Each job's requests per second and p99 in both, and live_vs_sim_error: the largest difference of
// a job's throughput or p99 from the simulated one, as a part of it. Of throughput the median of
// the rounds counts, of p99 the least disturbed round: pauses of the machine only add to it.
Result<void> bench_live_drive(const LiveDriveOptions& options, Report& report);

}  // namespace cairn::bench
