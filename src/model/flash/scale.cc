// SPDX-License-Identifier: Apache-2.0
#include "model/flash/scale.h"

#include <algorithm>

#include "model/flash/geometry.h"

namespace cairn::flash {

uint64_t logical_bytes(const Parameters& parameters) {
  return partition(parameters, 1).front().logical_sectors * kSectorBytes;
}

std::optional<Parameters> scaled_to(const Parameters& parameters, uint64_t bytes) {
  if (logical_bytes(parameters) < bytes) return std::nullopt;
  // Room grows with the blocks, and so does whatever check() asks for: search by halves.
  uint32_t enough = parameters.blocks_per_plane;
  uint32_t too_few = 0;
  Parameters scaled = parameters;
  while (enough - too_few > 1) {
    scaled.blocks_per_plane = too_few + (enough - too_few) / 2;
    const bool holds = !check(scaled) && logical_bytes(scaled) >= bytes;
    (holds ? enough : too_few) = scaled.blocks_per_plane;
  }
  scaled.blocks_per_plane = enough;
  return scaled;
}

}  // namespace cairn::flash
