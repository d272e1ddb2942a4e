// SPDX-License-Identifier: Apache-2.0
// A used drive instead of a new one: pages written, blocks partly invalid, mapping cache warm.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/workload.h"

namespace cairn::flash {

// How many valid pages blocks have after a long time of random writes: probability by count, from 0
// to `pages`. `load` is the part of the blocks' pages that is valid. After Van Houdt, "A mean field
// model for a class of garbage collection algorithms in flash-based solid state drives" (SIGMETRICS
// 2013); greedy is taken as the best of 30.
std::vector<double> steady_state(GcPolicy policy, uint32_t pages, double load, uint32_t choices,
                                 uint32_t invalid_min);

// The most that random writes can fill of a drive's logical pages.
inline constexpr double kOccupancyMax = 0.9;

// Puts the drive into the state that writing as `workload` would lead to, with `occupancy` of its
// logical pages written, those of `written` (by number in the stream) among them even if they are
// more. The drive must be new. False when the pages do not fit.
bool precondition(FlashModel& model, const Synthetic& workload, double occupancy,
                  const std::vector<bool>& written = {});

// The same by writing: `passes` times as many sectors as the working set has, in model time.
void precondition_by_replay(FlashModel& model, const Synthetic& workload, double passes);

// Only the mapping cache: of the pages that `workload` will touch, those are in it that would be
// after it had run for long. The drive is new otherwise.
void warm_mapping_for(FlashModel& model, const Synthetic& workload);

}  // namespace cairn::flash
