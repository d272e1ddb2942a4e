// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/checksum_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/units.h"
#include "drive/scatter.h"
#include "service/common/region_set_format.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kRegionBytesMin = 64_KiB;
constexpr uint64_t kAlignBytes = 64_KiB;  // of the data

// Of the bitmap and of a page.
struct Head {
  uint64_t magic;
  std::array<uint64_t, 2> id;
  uint64_t number;  // of the page; of the bitmap, how many regions
  uint32_t checksum;
  uint32_t part;  // which unit of the block
};
static_assert(sizeof(Head) == 40);
constexpr uint32_t kUnit = 512;
constexpr uint64_t kBitmapMagic = 0x70616d7469426b43;  // "CkBitmap"
constexpr uint64_t kPageMagic = 0x3167615065676150;    // "PagePag1"

struct Body {
  uint64_t data_offset;
  uint64_t data_blocks;
  uint64_t region_blocks;
};
static_assert(sizeof(Body) == 24 && sizeof(Body) <= kLabelBodyMax);
// The second form.
struct UnitBody {
  Body body;
  uint64_t unit;
};
static_assert(sizeof(UnitBody) == 32 && sizeof(UnitBody) <= kLabelBodyMax);

// Bytes of bits or entries in a block.
uint64_t room_of(uint32_t block_size, uint32_t unit) {
  return uint64_t{block_size / unit} * (unit - sizeof(Head));
}

// Where everything lies on a drive of so many blocks.
std::optional<ChecksumShape> place(uint64_t blocks, uint32_t block_size, uint32_t unit) {
  const uint64_t align = std::max<uint64_t>(kAlignBytes / block_size, 1);
  if (blocks <= kChecksumTableBlock) return std::nullopt;
  const uint64_t rest = blocks - kChecksumTableBlock;
  const uint64_t entries = room_of(block_size, unit) / sizeof(uint32_t);
  const uint64_t pages = (rest + entries) / (entries + 1);
  const uint64_t offset = align_up(kChecksumTableBlock + pages, align);
  if (offset >= blocks) return std::nullopt;
  ChecksumShape shape{.id = {},
                      .block_size = block_size,
                      .data_offset = offset,
                      .data_blocks = blocks - offset,
                      .unit = unit};
  shape.region_blocks = std::max<uint64_t>(kRegionBytesMin / block_size, 1);
  while (shape.regions() > room_of(block_size, unit) * 8) shape.region_blocks *= 2;
  return shape;
}

// `room` goes into the units of a block, one part after the other.
void seal(const ChecksumShape& shape, uint64_t magic, uint64_t number, Bytes room,
          MutableBytes block) {
  const size_t part = shape.unit - sizeof(Head);
  for (uint32_t i = 0; i < shape.block_size / shape.unit; ++i) {
    const MutableBytes unit = block.subspan(size_t{i} * shape.unit, shape.unit);
    Head head{.magic = magic, .id = shape.id, .number = number, .checksum = 0, .part = i};
    store(unit, head);
    std::ranges::copy(room.subspan(i * part, part), unit.begin() + sizeof head);
    head.checksum = crc32c(unit);
    store(unit, head);
  }
}

Result<void> check(const ChecksumShape& shape, Head head, Head wanted, Bytes unit) {
  if (head.magic != wanted.magic || head.id != shape.id) {
    return fail(Errc::kCorrupt, "the drive below has lost a block of the checksums");
  }
  const uint32_t checksum = std::exchange(head.checksum, 0);
  const Bytes start(reinterpret_cast<const std::byte*>(&head), sizeof head);
  if (crc32c(unit.subspan(sizeof head), crc32c(start)) != checksum) {
    return fail(Errc::kCorrupt, "a block of the checksums is damaged");
  }
  if (head.number != wanted.number || head.part != wanted.part) {
    return fail(Errc::kCorrupt, "a block of the checksums is in the wrong place");
  }
  return {};
}

// The other way round. Units of zeroes leave zeroes, if there may be some.
Result<std::vector<std::byte>> open(const ChecksumShape& shape, uint64_t magic, uint64_t number,
                                    bool may_be_blank, Bytes block) {
  const size_t part = shape.unit - sizeof(Head);
  std::vector<std::byte> room(room_of(shape.block_size, shape.unit));
  for (uint32_t i = 0; i < shape.block_size / shape.unit; ++i) {
    const Bytes unit = block.subspan(size_t{i} * shape.unit, shape.unit);
    if (may_be_blank && is_zero(unit)) continue;
    const Head wanted{.magic = magic, .id = shape.id, .number = number, .checksum = 0, .part = i};
    const Result<void> whole = check(shape, load<Head>(unit), wanted, unit);
    if (!whole) return fail(whole.error());
    std::ranges::copy(unit.subspan(sizeof(Head)), room.begin() + static_cast<ptrdiff_t>(i * part));
  }
  return room;
}

}  // namespace

uint64_t ChecksumShape::page_entries() const {
  return room_of(block_size, unit) / sizeof(uint32_t);
}

std::optional<ChecksumShape> new_checksum_shape(const Geometry& below) {
  return place(below.blocks, below.block_size, kUnit);
}

std::vector<std::byte> encode_checksum_body(const ChecksumShape& shape) {
  const Body body{.data_offset = shape.data_offset,
                  .data_blocks = shape.data_blocks,
                  .region_blocks = shape.region_blocks};
  std::vector<std::byte> bytes(sizeof(UnitBody));
  store(bytes, UnitBody{.body = body, .unit = shape.unit});
  return bytes;
}

Result<ChecksumShape> decode_checksum_body(const Label& label) {
  const auto wrong = fail(Errc::kCorrupt, "the label's numbers make no sense");
  const bool has_unit = label.body.size() == sizeof(UnitBody);
  if (!has_unit && label.body.size() != sizeof(Body)) return wrong;
  if (has_unit && load<UnitBody>(label.body).unit != kUnit) return wrong;
  const std::optional<ChecksumShape> shape =
      place(label.blocks, label.block_size, has_unit ? kUnit : label.block_size);
  const auto body = load<Body>(label.body);
  if (!shape || body.data_offset != shape->data_offset || body.data_blocks != shape->data_blocks ||
      body.region_blocks != shape->region_blocks) {
    return wrong;
  }
  ChecksumShape found = *shape;
  found.id = label.id;
  return found;
}

void encode_checksum_bitmap(const ChecksumShape& shape, const RegionSet& regions,
                            MutableBytes block) {
  std::vector<std::byte> room(room_of(shape.block_size, shape.unit));
  encode_regions(regions, room);
  seal(shape, kBitmapMagic, regions.size(), room, block);
}

Result<RegionSet> decode_checksum_bitmap(const ChecksumShape& shape, Bytes block) {
  const Result<std::vector<std::byte>> room =
      open(shape, kBitmapMagic, shape.regions(), false, block);
  if (!room) return fail(room.error());
  return decode_regions(*room, shape.regions());
}

void encode_checksum_page(const ChecksumShape& shape, uint64_t page,
                          std::span<const uint32_t> entries, MutableBytes block) {
  CHECK(entries.size() == shape.page_entries());
  std::vector<std::byte> room(room_of(shape.block_size, shape.unit));
  std::memcpy(room.data(), entries.data(), entries.size_bytes());
  seal(shape, kPageMagic, page, room, block);
}

Result<void> decode_checksum_page(const ChecksumShape& shape, uint64_t page, Bytes block,
                                  std::span<uint32_t> entries) {
  CHECK(entries.size() == shape.page_entries());
  const Result<std::vector<std::byte>> room = open(shape, kPageMagic, page, true, block);
  if (!room) return fail(room.error());
  std::memcpy(entries.data(), room->data(), entries.size_bytes());
  return {};
}

}  // namespace cairn::drive
