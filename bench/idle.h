// SPDX-License-Identifier: Apache-2.0
// What a world costs in which nothing happens.
#pragma once

#include "base/error.h"
#include "bench/world_load.h"

namespace cairn::bench {

// Processor time over time passed, of a whole two-core world that waits for `seconds` with one
// listener and one timer: 0.001 is a tenth of a percent of one core. Starting and ending do not
// count.
Result<double> idle_share(const WorldFactory& factory, double seconds);

}  // namespace cairn::bench
