// SPDX-License-Identifier: Apache-2.0
// Figure 11 (f): two tenants of one drive that collects garbage, each on half of its space: on all
// channels, or by the service `channels` on half of those.
#pragma once

#include "base/error.h"
#include "bench/leapio/scene.h"

namespace cairn::bench::leapio {

struct Tenancy {
  bool neighbour = false;  // writes hard
  bool apart = false;      // each on its own half of the channels
};

// What the tenant sees that reads 4 KiB at a steady rate. Errors: those of opening the stacks, and
// of the first request that failed.
Result<Played> read_beside(const Tenancy& tenancy, const Stage& stage);

}  // namespace cairn::bench::leapio
