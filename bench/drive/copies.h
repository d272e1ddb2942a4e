// SPDX-License-Identifier: Apache-2.0
// How often the bytes of a guest are copied on their way to a drive.
#pragma once

#include "base/error.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

// `cairn serve` at both doors for guests, with a file, a drive of a box over NVMe/TCP and
// memory behind it, while a driver without a guest reads and writes. Lines have the bytes that the
// serving process copied over those that were read or written, counted by a library that takes the
// place of memcpy() and its like; extras how many requests that were. Skipped where this library is
// not beside the program: sanitizers have a memcpy() of their own.
Result<void> bench_copies(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
