// SPDX-License-Identifier: Apache-2.0
// The meters that all measurements read alike: this machine's clock, and this process's time.
#pragma once

#include "base/units.h"

namespace cairn::loadgen {

// The clock.
Time now();
// Lets time pass without using any processor.
void pass_time(Duration duration);
// User and system time of this process so far.
Duration cpu_time();

}  // namespace cairn::loadgen
