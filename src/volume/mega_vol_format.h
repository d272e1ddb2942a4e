// SPDX-License-Identifier: Apache-2.0
// What the label of a MegaVol says besides what every label does: the body of a label
// (service/common/label.h) whose id is the drive's uuid.
//
//   0    uuid of the pool              16 bytes
//   16   bytes of an extent            eight bytes
//   24   extents of the drive          four bytes
//   28   number of the drive           two bytes
//   30   zero                          two bytes
#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/label.h"
#include "volume/types.h"

namespace cairn::volume {

inline constexpr drive::LabelKind kMegaVolLabel = {.service = "megavol", .version = 1};

struct MegaVolLabel {
  Uuid pool{};
  uint64_t extent_bytes = 0;
  uint32_t extents = 0;
  MegaVolId id;
  friend bool operator==(const MegaVolLabel&, const MegaVolLabel&) = default;
};

std::vector<std::byte> encode_mega_vol(const MegaVolLabel& label);
// kCorrupt.
Result<MegaVolLabel> decode_mega_vol(Bytes body);

}  // namespace cairn::volume
