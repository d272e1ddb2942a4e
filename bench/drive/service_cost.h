// SPDX-License-Identifier: Apache-2.0
// What a request costs in each service of the table, over drives in memory.
#pragma once

#include "base/error.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

// Each service as its example in the table says, and the bare drive, take turns: `requests` random
// reads of 4 KiB and as many writes, 32 at once, on one core. A line for each has the nanoseconds
// of one request and, as extras, those of the processor and what is above the bare drive in the
// same round. A service that does not open over memory, or fails, is skipped with its error.
Result<void> bench_services(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
