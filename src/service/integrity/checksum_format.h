// SPDX-License-Identifier: Apache-2.0
// What checksum keeps on the drive below, in blocks before the data.
//
//   block 0, 1    the label (label.h), with the body below
//   block 2       the bitmap of regions that may hold blocks without their checksums
//   block 3 on    the table: pages of entries, 4 bytes per block of data
//   from data_offset on   the data
//
// The bitmap and a page are rewritten in place, and power may tear a block inside where the disk's
// own blocks are smaller. So they are divided into units of 512 bytes, the least that a disk writes
// whole: each is a head and a part of the bits or entries. Units of before and of after side by
// side are sound: bits are there before what they speak of changes, and entries of regions that
// have one are made anew after a crash. A unit of zeroes has entries that are all 0. All numbers
// are little-endian; a checksum is the CRC32C of its unit with the checksum's own bytes zero. (In
// the first form of the label's body, which names no unit, it is the block.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "service/common/label.h"
#include "service/common/region_set.h"

namespace cairn::drive {

inline constexpr LabelKind kChecksumLabel{.service = "checksum", .version = 1};
inline constexpr uint64_t kChecksumBitmapBlock = 2;
inline constexpr uint64_t kChecksumTableBlock = 3;

struct ChecksumShape {
  std::array<uint64_t, 2> id{};
  uint32_t block_size = 0;
  uint64_t data_offset = 0;  // blocks
  uint64_t data_blocks = 0;
  uint64_t region_blocks = 0;
  uint32_t unit = 0;  // bytes

  uint64_t page_entries() const;
  uint64_t pages() const { return (data_blocks + page_entries() - 1) / page_entries(); }
  uint64_t regions() const { return (data_blocks + region_blocks - 1) / region_blocks; }
};

// For a drive of that shape; none: it is too small. The id is left 0.
std::optional<ChecksumShape> new_checksum_shape(const Geometry& below);
std::vector<std::byte> encode_checksum_body(const ChecksumShape& shape);
// kCorrupt: numbers that make no sense on a drive of the label's size.
Result<ChecksumShape> decode_checksum_body(const Label& label);

void encode_checksum_bitmap(const ChecksumShape& shape, const RegionSet& regions,
                            MutableBytes block);
// kCorrupt: damaged, or of another drive.
Result<RegionSet> decode_checksum_bitmap(const ChecksumShape& shape, Bytes block);

// `entries` has page_entries() members.
void encode_checksum_page(const ChecksumShape& shape, uint64_t page,
                          std::span<const uint32_t> entries, MutableBytes block);
// kCorrupt: damaged, or another page.
Result<void> decode_checksum_page(const ChecksumShape& shape, uint64_t page, Bytes block,
                                  std::span<uint32_t> entries);

}  // namespace cairn::drive
