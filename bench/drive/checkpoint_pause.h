// SPDX-License-Identifier: Apache-2.0
// How long a durable write waits while a service's journal saves its map.
#pragma once

#include "base/error.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

// A journal like that of `dedup`, with maps of three sizes, in a file. In each round one change
// after the other is committed from when a checkpoint begins until it counts, and as many without
// one: two lines for each size have the longest commit of each round, in milliseconds. A folder
// without direct access to files is skipped.
Result<void> bench_checkpoints(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
