// SPDX-License-Identifier: Apache-2.0
// Our NBD door and qemu-storage-daemon's, serving one file to the same fio jobs in turn.
#pragma once

#include "base/error.h"
#include "base/units.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

inline constexpr uint64_t kNbdFileSize = 256_MiB;

// Random reads and random writes of 4 KiB, 32 at once on each of one or four connections, past the
// page cache and through it. In each round every server carries every job once, pinned to one CPU
// with fio on the other. Lines have IO/s and, as extras, requests per CPU second of the server,
// which is what ratios compare. kIo: fio failed, or a server did.
Result<void> bench_nbd(const DriveBenchOptions& options, Report& report);

// `cairn drive serve` with 200 drives in memory, and nobody who asks: the part of a core it uses.
Result<void> bench_idle_drives(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
