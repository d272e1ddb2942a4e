// SPDX-License-Identifier: Apache-2.0
// What compress keeps on the drive below: a label whose body is a MappedLayout, a journal of
// CompressRecords, and units of a block (mapped_format.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/label.h"
#include "service/mapped/mapped_format.h"

namespace cairn::drive {

inline constexpr LabelKind kCompressLabel{.service = "compress", .version = 1};
inline constexpr uint64_t kCompressChunkBlocks = 8;

// Where a chunk lies: the first `count` of units; none: it is a hole. Numbers are little-endian.
struct CompressedChunk {
  uint32_t bytes = 0;  // of what is stored
  uint8_t count = 0;
  uint8_t codec = 0;  // Codec; kNone when nothing was saved, and only then count is the most
  uint16_t unused = 0;
  std::array<uint32_t, kCompressChunkBlocks> units{};  // counted from 0

  std::span<const uint32_t> used() const { return std::span(units).first(count); }
};
static_assert(sizeof(CompressedChunk) == 40);

struct CompressRecord {
  uint32_t number = 0;  // of the chunk
  CompressedChunk chunk;
};
static_assert(sizeof(CompressRecord) == 44);

// kCorrupt: another size, a chunk or unit that there is not, or a chunk that cannot be unpacked.
Result<CompressRecord> decode_compress_record(Bytes bytes, const MappedLayout& layout,
                                              uint32_t block_size);

}  // namespace cairn::drive
