// SPDX-License-Identifier: Apache-2.0
// Copy (NVM Command Set 1.0, 3.2.2): blocks of one namespace copied to another place in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

inline constexpr uint32_t kCopyRangesMax = 256;

struct CopyFields {
  Lba destination;                 // SDLBA
  uint32_t ranges = 1;             // NR, here one-based: 1 to kCopyRangesMax
  uint8_t format = 0;              // DESFMT: of the source ranges
  uint8_t protection_read = 0;     // PRINFOR
  uint8_t protection_write = 0;    // PRINFOW
  uint8_t directive_type = 0;      // DTYPE
  bool force_unit_access = false;  // FUA
  bool limited_retry = false;      // LR

  static constexpr CopyFields decode(const Sqe& sqe) {
    return {.destination = Lba(sqe.cdw10_11()),
            .ranges = bits<7, 0>(sqe.cdw12) + 1,
            .format = static_cast<uint8_t>(bits<11, 8>(sqe.cdw12)),
            .protection_read = static_cast<uint8_t>(bits<15, 12>(sqe.cdw12)),
            .protection_write = static_cast<uint8_t>(bits<29, 26>(sqe.cdw12)),
            .directive_type = static_cast<uint8_t>(bits<23, 20>(sqe.cdw12)),
            .force_unit_access = bit<30>(sqe.cdw12),
            .limited_retry = bit<31>(sqe.cdw12)};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.set_cdw10_11(destination.value());
    sqe.cdw12 = to_bits32<7, 0>(ranges - 1) | to_bits32<11, 8>(format) |
                to_bits32<15, 12>(protection_read) | to_bits32<23, 20>(directive_type) |
                to_bits32<29, 26>(protection_write) | to_bits32<30, 30>(force_unit_access) |
                to_bits32<31, 31>(limited_retry);
  }
  friend constexpr bool operator==(const CopyFields&, const CopyFields&) = default;
};

// A source range of format 0.
struct CopyRange {
  Reserved<8> unused0{};
  Le64 start;   // SLBA
  Le16 blocks;  // NLB: zero-based
  Reserved<6> unused18{};
  Le32 reference_tag;         // ELBRT
  Le16 application_tag;       // ELBAT
  Le16 application_tag_mask;  // ELBATM
};
static_assert(sizeof(CopyRange) == 32);
static_assert(offsetof(CopyRange, start) == 8);
static_assert(offsetof(CopyRange, blocks) == 16);
static_assert(offsetof(CopyRange, reference_tag) == 24);
static_assert(offsetof(CopyRange, application_tag) == 28);
static_assert(offsetof(CopyRange, application_tag_mask) == 30);

}  // namespace cairn::nvme
