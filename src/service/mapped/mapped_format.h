// SPDX-License-Identifier: Apache-2.0
// MappedLayout: how a service that maps chunks lays out the drive below.
//
//   label (2 blocks) | journal | units, each of the size of a chunk
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "drive/drive.h"
#include "service/common/journal.h"
#include "service/mapped/units.h"

namespace cairn::drive {

// The body of the label, little-endian. Numbers are blocks of the drive below unless named.
struct MappedLayout {
  uint64_t blocks = 0;  // of the drive above
  uint64_t chunk_blocks = 0;
  uint64_t journal_first = 0;
  uint64_t journal_blocks = 0;
  uint64_t data_first = 0;
  uint64_t units = 0;

  JournalArea journal() const { return {.first = journal_first, .blocks = journal_blocks}; }
  Units::Options place() const {
    return {.first = data_first, .blocks = chunk_blocks, .count = units};
  }
  uint64_t chunks() const { return (blocks + chunk_blocks - 1) / chunk_blocks; }
  friend bool operator==(const MappedLayout&, const MappedLayout&) = default;
};
static_assert(sizeof(MappedLayout) == 48);

// Chunks and units are counted in 32 bits, and the last number stands for no chunk: a drive has
// fewer than kMappedChunksMax - 1 whole chunks.
inline constexpr uint64_t kMappedChunksMax = uint64_t{1} << 32;

struct MappedPlan {
  uint64_t chunk_bytes = 0;  // 0: chosen by the size of the drive, up to chunk_bytes_max
  uint64_t chunk_bytes_max = 1 << 20;
  uint64_t records_per_unit = 1;  // of the state, at most
  uint64_t records_more = 0;      // of the state beside those
  size_t record_size = 0;
};
// As many units as fit; `blocks` is what they hold. kInvalid: the drive is too small, or a chunk is
// no power of two of blocks.
Result<MappedLayout> plan_layout(const Geometry& below, const MappedPlan& plan);

std::vector<std::byte> encode_layout(const MappedLayout& layout);
// kCorrupt: it does not fit the drive below, or itself.
Result<MappedLayout> decode_layout(Bytes body, const Geometry& below);

}  // namespace cairn::drive
