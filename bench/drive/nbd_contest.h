// SPDX-License-Identifier: Apache-2.0
// Our NBD door and qemu-storage-daemon's, serving one file to the same fio jobs in turn.
#pragma once

#include "base/error.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

// Random reads and random writes of 4 KiB, 32 at once on each of one or four connections, past the
// page cache and through it: a ServerContest, with fio on the other CPU.
Result<void> bench_nbd(const DriveBenchOptions& options, Report& report);

// `cairn serve` with 200 drives in memory, and nobody who asks: the part of a core it uses.
Result<void> bench_idle_drives(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
