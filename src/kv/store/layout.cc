// SPDX-License-Identifier: Apache-2.0
#include "kv/store/layout.h"

#include <algorithm>

#include "base/bytes.h"
#include "kv/store/bucket_format.h"
#include "kv/store/limits.h"
#include "kv/store/table_format.h"
#include "kv/store/value_format.h"
#include "service/common/label.h"

namespace cairn::kv::store {

namespace {

// How many keys a segment has on average, and how many hundredths of a bucket its chain then has:
// the last bucket of a chain is not full. Where a bucket has few items, two buckets of keys leave a
// fifth empty; where it has many, nearly all segments have one bucket.
struct Filling {
  uint64_t keys = 0;
  uint64_t percent = 0;
};
Filling filling_of(uint64_t block_bytes) {
  const uint64_t items = items_in_bucket(block_bytes);
  if (items < 64) return {.keys = items * 2, .percent = 246};
  return {.keys = items - items / 8, .percent = 108};
}

// Large enough for so many buckets to live.
uint64_t log_for(Layout layout, uint64_t live) {
  layout.key_buckets = std::max(live, kKeyBucketsMin);
  while (live_buckets_max(layout) < live) layout.key_buckets += layout.key_buckets / 128 + 1;
  return std::min(layout.key_buckets, kKeyBucketsMax);
}

// About what of a large log is no more than its limits keep free.
constexpr uint64_t kKeyLivePercent = 86;
constexpr uint64_t kValueLivePercent = 97;
constexpr uint64_t kValueBytesMin = 32 * kRecordBytesMax;

}  // namespace

Result<Layout> plan_layout(const drive::Geometry& geometry, uint64_t object_bytes) {
  if (object_bytes == 0) return fail(Errc::kInvalid, "objects of no bytes");
  const uint64_t block = geometry.block_size;
  const uint64_t record = record_units(1, object_bytes - 1) * kUnitBytes;
  const Filling filling = filling_of(block);
  const uint64_t key_bytes = block * filling.percent / kKeyLivePercent;
  const uint64_t value_bytes = filling.keys * record * 100 / kValueLivePercent;
  const uint64_t segments = std::clamp<uint64_t>(
      geometry.bytes() / (key_bytes + value_bytes + 2 * kEntryBytes), 1, kSegmentsMax);

  Layout layout{.block_bytes = block, .segments = segments};
  layout.table_block = drive::kLabelBlocks;
  layout.table_blocks = pages_of(segments) * page_bytes(block) / block;
  layout.key_block = layout.table_block + 2 * layout.table_blocks;
  layout.key_buckets = log_for(layout, segments * filling.percent / 100);
  layout.value_block = layout.key_block + layout.key_buckets;
  const uint64_t blocks_min = layout.value_block + kValueBytesMin / block + 1;
  if (geometry.blocks < blocks_min) {
    return fail(Errc::kInvalid, "the drive is too small for a key-value store; blocks it needs",
                static_cast<int32_t>(blocks_min));
  }
  layout.value_units =
      std::min((geometry.blocks - layout.value_block) * layout.units_in_block(), kValueUnitsMax);
  return layout;
}

bool is_sound(const Layout& layout, const drive::Geometry& geometry) {
  const auto ends_by = [](uint64_t first, uint64_t count, uint64_t end) {
    return first <= end && count <= end - first;
  };
  if (layout.block_bytes != geometry.block_size || layout.segments == 0 ||
      layout.segments > kSegmentsMax || layout.table_block < drive::kLabelBlocks) {
    return false;
  }
  const uint64_t blocks_of_value = layout.value_units / layout.units_in_block();
  return layout.table_blocks ==
             pages_of(layout.segments) * page_bytes(layout.block_bytes) / layout.block_bytes &&
         ends_by(layout.table_block, 2 * layout.table_blocks, layout.key_block) &&
         layout.key_buckets >= kKeyBucketsMin && layout.key_buckets <= kKeyBucketsMax &&
         ends_by(layout.key_block, layout.key_buckets, layout.value_block) &&
         layout.value_units <= kValueUnitsMax &&
         layout.value_units * kUnitBytes >= kValueBytesMin &&
         is_aligned(layout.value_units, layout.units_in_block()) &&
         ends_by(layout.value_block, blocks_of_value, geometry.blocks);
}

}  // namespace cairn::kv::store
