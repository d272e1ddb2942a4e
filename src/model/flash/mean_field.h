// SPDX-License-Identifier: Apache-2.0
// What garbage collection costs in the long run under uniform random writes, with infinitely many
// blocks: after Van Houdt, "A mean field model for a class of garbage collection algorithms in
// flash-based solid state drives" (SIGMETRICS 2013), and its limit of infinitely many choices.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/parameters.h"

namespace cairn::flash {

struct MeanField {
  // How many valid pages closed blocks have: probability by count, from 0 to the block's pages.
  std::vector<double> valid;
  // Pages programmed per page the user wrote.
  double write_amplification = 1;
};

// `pages` per block, at least 2. `load` is the part of the closed blocks' pages that is valid,
// above 0 and below 1 - 1 / pages.

// The victim has the fewest valid pages of all blocks.
MeanField greedy_mean_field(uint32_t pages, double load);
// The victim has the fewest of `choices` blocks drawn at random.
MeanField choices_mean_field(uint32_t pages, double load, uint32_t choices);

// The same for each policy as the reference computes it, by small steps: probability by count, from
// 0 to `pages`. Greedy is taken as the best of 30.
std::vector<double> steady_state(GcPolicy policy, uint32_t pages, double load, uint32_t choices,
                                 uint32_t invalid_min);

}  // namespace cairn::flash
