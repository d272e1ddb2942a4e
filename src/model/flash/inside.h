// SPDX-License-Identifier: Apache-2.0
// How a modelled drive stands at a moment, for people who look into it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/model.h"

namespace cairn::flash {

struct Inside {
  double fragmentation = 0;  // of the pages written since their block's erase: what is garbage
  uint64_t free_blocks = 0;
  uint64_t blocks = 0;
  uint64_t erases_max = 0;            // of one block
  uint64_t dirty_pages = 0;           // in the cache
  std::vector<double> channels_busy;  // part of the time, by channel
  double dies_busy = 0;               // mean of all dies
};

// Looks at every block: a few milliseconds for the largest drives. `span` is how long the drive has
// been on.
Inside look_inside(const FlashModel& model, Nanos span);

}  // namespace cairn::flash
