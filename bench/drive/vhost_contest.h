// SPDX-License-Identifier: Apache-2.0
// Our vhost-user door and qemu-storage-daemon's, serving one file to the same driver in turn.
#pragma once

#include "base/error.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

// Random reads and writes of 4 KiB and long reads, by a driver without a guest: no virtual machine
// is in the way, so both servers get as much to do as they can. In each round every server carries
// every job once, pinned to one CPU with the driver on the other. Lines have IO/s and, as extras,
// requests per CPU second of the server, which is what ratios compare. kIo: a request failed, or a
// server did.
Result<void> bench_vhost(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
