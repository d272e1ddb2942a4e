// SPDX-License-Identifier: Apache-2.0
#include "drive/checksum_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/units.h"
#include "drive/scatter.h"

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
  uint32_t unused;
};
static_assert(sizeof(Head) == 40);
constexpr uint64_t kBitmapMagic = 0x70616d7469426b43;  // "CkBitmap"
constexpr uint64_t kPageMagic = 0x3167615065676150;    // "PagePag1"

struct Body {
  uint64_t data_offset;
  uint64_t data_blocks;
  uint64_t region_blocks;
};
static_assert(sizeof(Body) == 24 && sizeof(Body) <= kLabelBodyMax);

uint64_t regions_max(uint32_t block_size) { return (block_size - sizeof(Head)) * 8; }

uint64_t entries_of(uint32_t block_size) { return (block_size - sizeof(Head)) / sizeof(uint32_t); }

// Where everything lies on a drive of so many blocks.
std::optional<ChecksumShape> place(uint64_t blocks, uint32_t block_size) {
  const uint64_t align = std::max<uint64_t>(kAlignBytes / block_size, 1);
  if (blocks <= kChecksumTableBlock) return std::nullopt;
  const uint64_t rest = blocks - kChecksumTableBlock;
  const uint64_t pages = (rest + entries_of(block_size)) / (entries_of(block_size) + 1);
  const uint64_t offset = align_up(kChecksumTableBlock + pages, align);
  if (offset >= blocks) return std::nullopt;
  ChecksumShape shape{
      .id = {}, .block_size = block_size, .data_offset = offset, .data_blocks = blocks - offset};
  shape.region_blocks = std::max<uint64_t>(kRegionBytesMin / block_size, 1);
  while (shape.regions() > regions_max(block_size)) shape.region_blocks *= 2;
  return shape;
}

void seal(Head head, MutableBytes block) {
  head.checksum = 0;
  store(block, head);
  head.checksum = crc32c(block);
  store(block, head);
}

Result<Head> open(Bytes block, uint64_t magic, const std::array<uint64_t, 2>& id) {
  Head head = load<Head>(block);
  if (head.magic != magic || head.id != id) {
    return fail(Errc::kCorrupt, "the drive below has lost a block of the checksums");
  }
  const uint32_t checksum = std::exchange(head.checksum, 0);
  const Bytes start(reinterpret_cast<const std::byte*>(&head), sizeof head);
  if (crc32c(block.subspan(sizeof head), crc32c(start)) != checksum) {
    return fail(Errc::kCorrupt, "a block of the checksums is damaged");
  }
  return head;
}

}  // namespace

uint64_t ChecksumShape::page_entries() const { return entries_of(block_size); }

std::optional<ChecksumShape> new_checksum_shape(const Geometry& below) {
  return place(below.blocks, below.block_size);
}

std::vector<std::byte> encode_checksum_body(const ChecksumShape& shape) {
  std::vector<std::byte> bytes(sizeof(Body));
  store(bytes, Body{.data_offset = shape.data_offset,
                    .data_blocks = shape.data_blocks,
                    .region_blocks = shape.region_blocks});
  return bytes;
}

Result<ChecksumShape> decode_checksum_body(const Label& label) {
  const std::optional<ChecksumShape> shape = place(label.blocks, label.block_size);
  const auto wrong = fail(Errc::kCorrupt, "the label's numbers make no sense");
  if (!shape || label.body.size() != sizeof(Body)) return wrong;
  const auto body = load<Body>(label.body);
  if (body.data_offset != shape->data_offset || body.data_blocks != shape->data_blocks ||
      body.region_blocks != shape->region_blocks) {
    return wrong;
  }
  ChecksumShape found = *shape;
  found.id = label.id;
  return found;
}

void encode_checksum_bitmap(const ChecksumShape& shape, const RegionSet& regions,
                            MutableBytes block) {
  std::ranges::fill(block, std::byte{0});
  regions.store(block.subspan(sizeof(Head)));
  seal(
      {.magic = kBitmapMagic, .id = shape.id, .number = regions.size(), .checksum = 0, .unused = 0},
      block);
}

Result<RegionSet> decode_checksum_bitmap(const ChecksumShape& shape, Bytes block) {
  const Result<Head> head = open(block, kBitmapMagic, shape.id);
  if (!head) return fail(head.error());
  if (head->number != shape.regions()) return fail(Errc::kCorrupt, "the bitmap makes no sense");
  RegionSet regions(shape.regions());
  regions.load(block.subspan(sizeof(Head)));
  return regions;
}

void encode_checksum_page(const ChecksumShape& shape, uint64_t page,
                          std::span<const uint32_t> entries, MutableBytes block) {
  CHECK(entries.size() == shape.page_entries());
  std::ranges::fill(block, std::byte{0});
  std::memcpy(block.data() + sizeof(Head), entries.data(), entries.size_bytes());
  seal({.magic = kPageMagic, .id = shape.id, .number = page, .checksum = 0, .unused = 0}, block);
}

Result<void> decode_checksum_page(const ChecksumShape& shape, uint64_t page, Bytes block,
                                  std::span<uint32_t> entries) {
  CHECK(entries.size() == shape.page_entries());
  std::ranges::fill(entries, 0);
  if (is_zero(block)) return {};
  const Result<Head> head = open(block, kPageMagic, shape.id);
  if (!head) return fail(head.error());
  if (head->number != page) {
    return fail(Errc::kCorrupt, "a block of the checksums is in the wrong place");
  }
  std::memcpy(entries.data(), block.data() + sizeof(Head), entries.size_bytes());
  return {};
}

}  // namespace cairn::drive
