// SPDX-License-Identifier: Apache-2.0
// `cairn bench volume`: elastic volumes next to plain drives and stripes, in one process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/contest.h"
#include "bench/report.h"
#include "bench/world_load.h"
#include "model/flash/parameters.h"

namespace cairn::bench {

struct VolumeBenchOptions {
  int rounds = 5;
  double seconds = 0.3;           // of one run
  bool full = false;              // growth up to the sizes of a large pool
  std::vector<std::string> only;  // names from volume_parts(); empty: all
  WorldFactory world;
  std::shared_ptr<const flash::Parameters> flash;  // the modelled drives
  Progress progress;
};

// What `only` may name.
const std::vector<std::string>& volume_parts();

// Each part in a world of its own, subjects taking turns in rounds.
Result<Report> bench_volume(const VolumeBenchOptions& options);

// "cost": 4 KiB at depth 32 on drives in memory, on one core. evol_cpu_per_io_vs_plain is the
// processor time of a request to a volume over four drives divided by one to a plain drive in the
// same round, of reads and writes the higher; stripe_cpu_per_io_vs_plain and
// r3_cpu_per_io_vs_plain are the same for a stripe and for a volume of three replicas.
Result<void> bench_volume_cost(const VolumeBenchOptions& options, Report& report);

}  // namespace cairn::bench
