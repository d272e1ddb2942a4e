// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/compress_format.h"

#include <algorithm>

#include "service/mapped/codec.h"

namespace cairn::drive {

Result<CompressRecord> decode_compress_record(Bytes bytes, const MappedLayout& layout,
                                              uint32_t block_size) {
  const auto damaged = fail(Errc::kCorrupt, "the map is damaged");
  if (bytes.size() != sizeof(CompressRecord)) return damaged;
  const auto record = load<CompressRecord>(bytes);
  const CompressedChunk& chunk = record.chunk;
  if (record.number >= layout.blocks / kCompressChunkBlocks || chunk.count > kCompressChunkBlocks ||
      chunk.codec > static_cast<uint8_t>(Codec::kZstd) ||
      chunk.bytes > uint64_t{chunk.count} * block_size) {
    return damaged;
  }
  const bool is_stored = chunk.codec == static_cast<uint8_t>(Codec::kNone);
  if (chunk.count > 0 && is_stored != (chunk.count == kCompressChunkBlocks)) return damaged;
  if (std::ranges::any_of(chunk.used(), [&](uint32_t unit) { return unit >= layout.units; })) {
    return damaged;
  }
  return record;
}

}  // namespace cairn::drive
