// SPDX-License-Identifier: Apache-2.0
// Dataset Management (NVM Command Set 1.0, 3.2.3): hints about ranges of blocks, of which only
// deallocation asks for something to be done.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

inline constexpr uint32_t kDsmRangesMax = 256;

struct DsmFields {
  uint32_t ranges = 1;          // NR, here one-based: 1 to kDsmRangesMax
  bool integral_read = false;   // IDR
  bool integral_write = false;  // IDW
  bool deallocate = false;      // AD

  static constexpr DsmFields decode(const Sqe& sqe) {
    return {.ranges = bits<7, 0>(sqe.cdw10) + 1,
            .integral_read = bit<0>(sqe.cdw11),
            .integral_write = bit<1>(sqe.cdw11),
            .deallocate = bit<2>(sqe.cdw11)};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<7, 0>(ranges - 1);
    sqe.cdw11 = to_bits32<0, 0>(integral_read) | to_bits32<1, 1>(integral_write) |
                to_bits32<2, 2>(deallocate);
  }
  friend constexpr bool operator==(const DsmFields&, const DsmFields&) = default;
};

struct DsmRange {
  Le32 context;  // CATTR: hints, which may be ignored
  Le32 blocks;   // LLB; 0 is nothing
  Le64 start;    // SLBA
};
static_assert(sizeof(DsmRange) == 16);
static_assert(offsetof(DsmRange, blocks) == 4);
static_assert(offsetof(DsmRange, start) == 8);

}  // namespace cairn::nvme
