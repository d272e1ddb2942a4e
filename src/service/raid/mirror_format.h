// SPDX-License-Identifier: Apache-2.0
// What a mirror keeps on each of its legs, in blocks before the data.
//
//   block 0, 1    the label, newest in block (generation modulo 2)
//   block 2       the write-intent bitmap
//   from data_offset on   the data
//
// A block is written whole or not at all. All numbers are little-endian; a checksum is the CRC32C
// of its block with the checksum's own bytes zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/region_set.h"
#include "service/raid/leg.h"

namespace cairn::drive {

inline constexpr size_t kMirrorLegsMax = 8;
inline constexpr uint64_t kMirrorBitmapBlock = 2;
inline constexpr uint32_t kMirrorVersion = 1;

// The same on all legs but for `own_id` and `medium`. A leg is stale from the generation whose
// label said so first: it lacks what was written since, where the bitmap has a bit.
struct MirrorLabel {
  std::array<uint64_t, 2> id{};  // of the mirror
  uint64_t generation = 0;
  uint64_t data_offset = 0;  // blocks
  uint64_t data_blocks = 0;
  uint64_t region_blocks = 0;
  uint32_t block_size = 0;
  uint32_t leg_count = 0;
  uint64_t own_id = 0;
  uint32_t primary = 0;  // of the legs: where good ones may differ, it is right
  uint64_t writer = 0;   // drawn by each opening (check_writer() in label.h); 0: not known
  uint64_t medium = 0;   // what this leg stands on (base/medium_id.h); 0: not known
  std::array<LegMember, kMirrorLegsMax> legs{};

  // Null: it is no member.
  const LegMember* find(uint64_t leg_id) const;
  std::span<const LegMember> membership() const { return std::span(legs).first(leg_count); }
  std::span<LegMember> membership() { return std::span(legs).first(leg_count); }
  const LegMember& own_member() const { return *find(own_id); }
  uint64_t leg_blocks() const { return data_offset + data_blocks; }
  size_t regions() const { return (data_blocks + region_blocks - 1) / region_blocks; }
  friend bool operator==(const MirrorLabel&, const MirrorLabel&) = default;
};

// `block` is a whole block, 512 bytes or more.
void encode_label(const MirrorLabel& label, MutableBytes block);
// kNotFound: the block is all zeroes; kUnsupported: of another version; kInvalid: no label;
// kCorrupt: a label whose checksum or numbers are wrong.
Result<MirrorLabel> decode_label(Bytes block);

// How many regions a bitmap of one block can have.
size_t mirror_regions_max(uint32_t block_size);
void encode_bitmap(const RegionSet& regions, const MirrorLabel& label, MutableBytes block);
// kCorrupt: damaged, or of another mirror.
Result<RegionSet> decode_bitmap(const MirrorLabel& label, Bytes block);

}  // namespace cairn::drive
