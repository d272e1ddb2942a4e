// SPDX-License-Identifier: Apache-2.0
#include "volume/intent_format.h"

#include <algorithm>

#include "base/check.h"
#include "service/common/region_set_format.h"
#include "service/common/sealed_format.h"

namespace cairn::volume {

namespace {

constexpr uint64_t kMagic = 0x746e65746e496e43;  // "CnIntent"
constexpr uint32_t kVersion = 1;
constexpr size_t kVolumeAt = 16;
constexpr size_t kEpochAt = 24;
constexpr size_t kNumberAt = 32;
constexpr size_t kRegionExtentsAt = 40;
constexpr size_t kRegionsAt = 44;
constexpr size_t kMarksAt = 64;

}  // namespace

void encode_intents(const IntentRecord& record, MutableBytes block) {
  CHECK(block.size() == kIntentBytes && record.marks.size() <= kIntentRegionsMax);
  std::ranges::fill(block, std::byte{0});
  store(block.subspan(kVolumeAt), record.volume.value());
  store(block.subspan(kEpochAt), record.epoch.value());
  store(block.subspan(kNumberAt), record.number);
  store(block.subspan(kRegionExtentsAt), record.region_extents);
  store(block.subspan(kRegionsAt), static_cast<uint32_t>(record.marks.size()));
  drive::encode_regions(record.marks, block.subspan(kMarksAt));
  drive::seal(block, kMagic, kVersion);
}

Result<std::optional<IntentRecord>> decode_intents(Bytes block, VolumeId volume) {
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  if (std::ranges::all_of(block, is_zero)) return std::optional<IntentRecord>();
  const auto seal = load<drive::Seal>(block);
  if (seal.magic != kMagic || !drive::is_whole(block)) {
    return fail(Errc::kCorrupt, "a record of write intents is damaged");
  }
  if (seal.version != kVersion) {
    return fail(Errc::kUnsupported, "write intents of another version",
                static_cast<int32_t>(seal.version));
  }
  if (load<uint64_t>(block.subspan(kVolumeAt)) != volume.value()) {
    return fail(Errc::kMismatch, "write intents of another volume");
  }
  IntentRecord record{.volume = volume,
                      .epoch = Epoch(load<uint64_t>(block.subspan(kEpochAt))),
                      .number = load<uint64_t>(block.subspan(kNumberAt)),
                      .region_extents = load<uint32_t>(block.subspan(kRegionExtentsAt)),
                      .marks = {}};
  const auto regions = load<uint32_t>(block.subspan(kRegionsAt));
  if (regions > kIntentRegionsMax || record.region_extents == 0 ||
      uint64_t{regions} * record.region_extents > uint64_t{kVolumeExtentsMax} + kIntentRegionsMax) {
    return fail(Errc::kCorrupt, "a record of write intents makes no sense");
  }
  record.marks = drive::decode_regions(block.subspan(kMarksAt), regions);
  return record;
}

}  // namespace cairn::volume
