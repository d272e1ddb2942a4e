// SPDX-License-Identifier: Apache-2.0
// How long a drive says nothing while its layers move to a box, and back.
#pragma once

#include "base/error.h"
#include "bench/drive/drive_bench.h"
#include "bench/report.h"

namespace cairn::bench {

// `cairn serve` has a mirror of two files, and a driver without a guest asks for its blocks
// over vhost-user, eight requests at once, seven reads in ten. In each round `cairn drive move`
// takes the layers to a box and back. Lines have the longest time without an answer in each move,
// as the driver saw it, and between moves; extras the worst of them and what the command itself
// says. kIo: a request failed, or a move did; kTimedOut: no answer came any more.
Result<void> bench_move(const DriveBenchOptions& options, Report& report);

}  // namespace cairn::bench
