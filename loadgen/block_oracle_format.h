// SPDX-License-Identifier: Apache-2.0
// A BlockOracle as bytes, little-endian: what `cairn nvme verify` keeps between two runs.
//
//   magic 8 | seed 8 | first block 8 | block count 8 | blocks, 12 bytes each | CRC32C of all that
//
// A block is the generation that was issued last, the one acknowledged last, and the newest that
// survives a crash, 4 bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::loadgen {

struct SavedBlock {
  uint32_t issued = 0;
  uint32_t acknowledged = 0;
  uint32_t durable = 0;
};
struct SavedOracle {
  uint64_t seed = 0;
  uint64_t first = 0;
  std::vector<SavedBlock> blocks;
};

std::vector<std::byte> encode_oracle(const SavedOracle& oracle);
// kInvalid: none such, or cut short. kCorrupt: damaged.
Result<SavedOracle> decode_oracle(Bytes bytes);

}  // namespace cairn::loadgen
