// SPDX-License-Identifier: Apache-2.0
#include "model/flash/inside.h"

#include <algorithm>

namespace cairn::flash {

Inside look_inside(const FlashModel& model, Nanos span) {
  const Geometry& geometry = model.geometry();
  const double time = static_cast<double>(std::max<Nanos>(span, 1));
  Inside inside;
  inside.blocks = uint64_t{geometry.planes()} * geometry.blocks();
  uint64_t written = 0;
  uint64_t invalid = 0;
  for (uint32_t i = 0; i < inside.blocks; ++i) {
    const Block& block = model.blocks()[i];
    written += block.written;
    invalid += block.invalid;
    inside.erases_max = std::max<uint64_t>(inside.erases_max, block.erases);
  }
  if (written > 0) {
    inside.fragmentation = static_cast<double>(invalid) / static_cast<double>(written);
  }
  for (uint32_t plane = 0; plane < geometry.planes(); ++plane) {
    inside.free_blocks += model.blocks().free_blocks(plane);
  }
  inside.dirty_pages = model.cache().dirty();
  for (uint32_t i = 0; i < geometry.channels(); ++i) {
    inside.channels_busy.push_back(static_cast<double>(model.channel_busy(i)) / time);
  }
  for (uint32_t i = 0; i < geometry.dies(); ++i) {
    inside.dies_busy += static_cast<double>(model.die_busy(i)) / time / geometry.dies();
  }
  return inside;
}

}  // namespace cairn::flash
