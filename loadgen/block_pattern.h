// SPDX-License-Identifier: Apache-2.0
// Blocks that say who wrote them: contents that follow from a seed, the block's place and how often
// it was written, and from nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/ids.h"

namespace cairn::loadgen {

struct BlockStamp {
  uint64_t seed = 0;
  Lba lba;
  uint32_t generation = 0;  // 1 for the first write of the block
  friend bool operator==(const BlockStamp&, const BlockStamp&) = default;
};

// `block` is 512 bytes or more, a multiple of 8.
void fill_block(MutableBytes block, const BlockStamp& stamp);
// The stamp whose contents these are, to the last byte; none when there is no such.
std::optional<BlockStamp> read_stamp(Bytes block);

// It begins as a block of this seed does, whole or not.
bool bears_seed(Bytes block, uint64_t seed);

// "generation 6 of block 12", "zeroes", "generation 7 of this block, damaged from byte 512 on":
// what a block holds that was expected to be of `expected`'s seed and place.
std::string describe_block(Bytes block, const BlockStamp& expected);

}  // namespace cairn::loadgen
