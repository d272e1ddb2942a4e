// SPDX-License-Identifier: Apache-2.0
// Figure 11 (f): two tenants of one drive, whose flash channels they share or have to themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "model/flash/parameters.h"

namespace cairn::bench::leapio {

struct Tenancy {
  bool neighbour = false;  // writes hard
  bool apart = false;      // each on its own half of the channels
};

// Latencies of 4 KiB reads at a steady rate, in microseconds, of the tenant that does not write.
// kInvalid: a drive that is too small for two.
Result<std::vector<double>> read_latencies_us(const flash::Parameters& drive,
                                              const Tenancy& tenancy, uint64_t requests,
                                              uint64_t seed);

}  // namespace cairn::bench::leapio
