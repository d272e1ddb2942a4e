// SPDX-License-Identifier: Apache-2.0
#include "service/raid/mirror_format.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "service/common/region_set_format.h"
#include "service/common/sealed_format.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kLabelMagic = 0x726f7272694d6e43;   // "CnMirror"
constexpr uint64_t kBitmapMagic = 0x7370614d72694d43;  // "CMirMaps"

struct LabelBody {
  std::array<uint64_t, 2> mirror_id;
  uint64_t generation;
  uint64_t data_offset;
  uint64_t data_blocks;
  uint64_t region_blocks;
  uint32_t block_size;
  uint32_t leg_count;
  uint64_t own_id;
  uint32_t primary;
  uint32_t unused;
  std::array<LegMember, kMirrorLegsMax> legs;
  uint64_t writer;  // this and what follows was zero before there were any
  uint64_t medium;
};
static_assert(sizeof(LabelBody) == 88 + 16 * kMirrorLegsMax);
static_assert(sizeof(Seal) + sizeof(LabelBody) <= 512);

struct BitmapBody {
  std::array<uint64_t, 2> mirror_id;
  uint64_t regions;
  std::array<uint64_t, 3> unused;
};
static_assert(sizeof(Seal) + sizeof(BitmapBody) == 64);
constexpr size_t kBitsOffset = sizeof(Seal) + sizeof(BitmapBody);

bool makes_sense(const MirrorLabel& label) {
  const bool has_legs = label.leg_count >= 1 && label.leg_count <= kMirrorLegsMax;
  for (size_t i = 0; has_legs && i < label.leg_count; ++i) {
    if (label.find(label.legs[i].id) != &label.legs[i]) return false;  // two of one id
  }
  const bool has_blocks = std::has_single_bit(label.block_size) && label.block_size >= 512 &&
                          label.block_size <= 65536 && label.data_offset > kMirrorBitmapBlock &&
                          label.data_offset < UINT32_MAX && label.data_blocks > 0 &&
                          label.data_blocks < UINT64_MAX / label.block_size - label.data_offset;
  return has_legs && has_blocks && label.region_blocks > 0 &&
         label.region_blocks < UINT64_MAX - label.data_blocks &&
         label.regions() <= mirror_regions_max(label.block_size) && label.generation > 0 &&
         label.primary < label.leg_count && label.find(label.own_id) != nullptr;
}

}  // namespace

const LegMember* MirrorLabel::find(uint64_t leg_id) const {
  for (size_t i = 0; i < leg_count; ++i) {
    if (legs[i].id == leg_id) return &legs[i];
  }
  return nullptr;
}

void encode_label(const MirrorLabel& label, MutableBytes block) {
  std::ranges::fill(block, std::byte{0});
  const LabelBody body{.mirror_id = label.id,
                       .generation = label.generation,
                       .data_offset = label.data_offset,
                       .data_blocks = label.data_blocks,
                       .region_blocks = label.region_blocks,
                       .block_size = label.block_size,
                       .leg_count = label.leg_count,
                       .own_id = label.own_id,
                       .primary = label.primary,
                       .unused = 0,
                       .legs = label.legs,
                       .writer = label.writer,
                       .medium = label.medium};
  store(block.subspan(sizeof(Seal)), body);
  seal(block, kLabelMagic, kMirrorVersion);
}

Result<MirrorLabel> decode_label(Bytes block) {
  const auto start = load<Seal>(block);
  if (start.magic != kLabelMagic) {
    const bool is_blank = std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; });
    if (is_blank) return fail(Errc::kNotFound, "a mirror's label");
    return fail(Errc::kInvalid, "the drive holds something else than a mirror's leg");
  }
  if (!is_whole(block)) return fail(Errc::kCorrupt, "the checksum of a mirror's label");
  if (start.version != kMirrorVersion) {
    return fail(Errc::kUnsupported, "the label is of another version of mirrors",
                static_cast<int32_t>(start.version));
  }
  const auto body = load<LabelBody>(block.subspan(sizeof start));
  const MirrorLabel label{.id = body.mirror_id,
                          .generation = body.generation,
                          .data_offset = body.data_offset,
                          .data_blocks = body.data_blocks,
                          .region_blocks = body.region_blocks,
                          .block_size = body.block_size,
                          .leg_count = body.leg_count,
                          .own_id = body.own_id,
                          .primary = body.primary,
                          .writer = body.writer,
                          .medium = body.medium,
                          .legs = body.legs};
  if (label.block_size != block.size() || !makes_sense(label)) {
    return fail(Errc::kCorrupt, "the numbers in a mirror's label");
  }
  return label;
}

size_t mirror_regions_max(uint32_t block_size) { return (block_size - kBitsOffset) * 8; }

void encode_bitmap(const RegionSet& regions, const MirrorLabel& label, MutableBytes block) {
  std::ranges::fill(block, std::byte{0});
  const BitmapBody body{.mirror_id = label.id, .regions = regions.size(), .unused = {}};
  store(block.subspan(sizeof(Seal)), body);
  encode_regions(regions, block.subspan(kBitsOffset));
  seal(block, kBitmapMagic, kMirrorVersion);
}

Result<RegionSet> decode_bitmap(const MirrorLabel& label, Bytes block) {
  const auto start = load<Seal>(block);
  const auto body = load<BitmapBody>(block.subspan(sizeof start));
  if (start.magic != kBitmapMagic || start.version != kMirrorVersion || !is_whole(block) ||
      body.mirror_id != label.id || body.regions != label.regions()) {
    return fail(Errc::kCorrupt, "a mirror's bitmap");
  }
  return decode_regions(block.subspan(kBitsOffset), label.regions());
}

}  // namespace cairn::drive
