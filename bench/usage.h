// SPDX-License-Identifier: Apache-2.0
// Usage: what a process with one core has used so far, to be read twice and subtracted.
#pragma once

#include "base/units.h"
#include "bench/exchange_figures.h"
#include "env/env.h"

namespace cairn::bench {

struct Usage {
  Duration cpu;
  Duration user;  // of it, outside the kernel; by the kernel's own sampling, so only roughly
  env::KernelCalls kernel;
};

// Of this process, whose only core is `env`'s.
Usage usage_of(const env::Env& env);

// What lies between two readings, for each of `operations` (at least one).
SideCost cost_between(const Usage& before, const Usage& after, double operations);

}  // namespace cairn::bench
