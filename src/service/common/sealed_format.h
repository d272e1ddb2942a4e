// SPDX-License-Identifier: Apache-2.0
// Sealed blocks: metadata that knows its kind, its version and whether it is whole.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cairn::drive {

// The first bytes of a sealed block. The checksum is the CRC32C of the whole block with the
// checksum's own bytes zero.
struct Seal {
  uint64_t magic = 0;
  uint32_t version = 0;
  uint32_t checksum = 0;
};
static_assert(sizeof(Seal) == 16);

// Fills in the seal of a block whose other bytes are final.
void seal(MutableBytes block, uint64_t magic, uint32_t version);
// Whether the checksum is right; magic and version are the caller's to judge.
bool is_whole(Bytes block);

}  // namespace cairn::drive
