// SPDX-License-Identifier: Apache-2.0
// Fields of the commands that name one range of blocks (NVM Command Set 1.0, 3.2): Read, Write,
// Compare, Write Zeroes, Verify and Write Uncorrectable.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// The most blocks one command can name: NLB is 16 bits and zero-based.
inline constexpr uint32_t kBlocksPerCommandMax = 65536;

struct BlockFields {
  Lba start;                       // SLBA
  uint32_t blocks = 1;             // NLB, here one-based: 1 to kBlocksPerCommandMax
  bool limited_retry = false;      // LR
  bool force_unit_access = false;  // FUA
  uint8_t protection = 0;          // PRINFO; nonzero asks for what a drive without metadata refuses
  bool deallocate = false;         // DEAC; Write Zeroes only
  uint8_t directive_type = 0;      // DTYPE; Write only
  uint8_t dataset_hint = 0;        // DSM; Read and Write only

  static constexpr BlockFields decode(const Sqe& sqe) {
    return {.start = Lba(sqe.cdw10_11()),
            .blocks = bits<15, 0>(sqe.cdw12) + 1,
            .limited_retry = bit<31>(sqe.cdw12),
            .force_unit_access = bit<30>(sqe.cdw12),
            .protection = static_cast<uint8_t>(bits<29, 26>(sqe.cdw12)),
            .deallocate = bit<25>(sqe.cdw12),
            .directive_type = static_cast<uint8_t>(bits<23, 20>(sqe.cdw12)),
            .dataset_hint = static_cast<uint8_t>(bits<7, 0>(sqe.cdw13))};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.set_cdw10_11(start.value());
    sqe.cdw12 = to_bits32<15, 0>(blocks - 1) | to_bits32<23, 20>(directive_type) |
                to_bits32<25, 25>(deallocate) | to_bits32<29, 26>(protection) |
                to_bits32<30, 30>(force_unit_access) | to_bits32<31, 31>(limited_retry);
    sqe.cdw13 = dataset_hint;
  }
  friend constexpr bool operator==(const BlockFields&, const BlockFields&) = default;
};

}  // namespace cairn::nvme
