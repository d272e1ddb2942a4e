// SPDX-License-Identifier: Apache-2.0
// A used drive instead of a new one: pages written, blocks partly invalid, mapping cache warm.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/workload.h"

namespace cairn::flash {

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
