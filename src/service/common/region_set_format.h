// SPDX-License-Identifier: Apache-2.0
// A set of regions as bytes: a bit for each, region 0 in the lowest bit of the first byte.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "service/common/region_set.h"

namespace cairn::drive {

// Both take the first (regions + 7) / 8 bytes, which have to be there. What is behind them stays,
// or is not looked at; so are the bits of the last byte that stand for no region.
inline void encode_regions(const RegionSet& regions, MutableBytes to) {
  for (size_t i = 0; i < (regions.size() + 7) / 8; ++i) {
    to[i] = static_cast<std::byte>(regions.words()[i / 8] >> (i % 8 * 8));
  }
}
inline RegionSet decode_regions(Bytes from, size_t regions) {
  RegionSet set(regions);
  for (size_t region = 0; region < regions; ++region) {
    const auto byte = std::to_integer<unsigned>(from[region / 8]);
    if ((byte >> (region % 8) & 1) != 0) set.add(region);
  }
  return set;
}

}  // namespace cairn::drive
