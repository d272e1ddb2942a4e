// SPDX-License-Identifier: Apache-2.0
#include "kv/store/layout.h"

#include <algorithm>

#include "base/bytes.h"
#include "kv/store/bucket_format.h"
#include "kv/store/table_format.h"
#include "kv/store/value_format.h"
#include "service/common/label.h"

namespace cairn::kv::store {

namespace {

// A segment has on average as many keys as a bucket has items: then the table takes 5 bytes for 15
// or more keys. Some segments need a second bucket, and compaction needs room: together this many
// hundredths of a bucket for each segment.
constexpr uint64_t kKeyLogPercent = 220;
// What the value log keeps free for its compaction.
constexpr uint64_t kValueSlackPercent = 6;
constexpr uint64_t kValueBytesMin = 32 * kRecordBytesMax;

}  // namespace

Result<Layout> plan_layout(const drive::Geometry& geometry, uint64_t object_bytes) {
  if (object_bytes == 0) return fail(Errc::kInvalid, "objects of no bytes");
  const uint64_t block = geometry.block_size;
  const uint64_t record = record_units(1, object_bytes - 1) * kUnitBytes;
  const uint64_t key_bytes = block * kKeyLogPercent / 100;
  const uint64_t value_bytes = items_in_bucket(block) * record * (100 + kValueSlackPercent) / 100;
  const uint64_t segments = std::clamp<uint64_t>(
      geometry.bytes() / (key_bytes + value_bytes + 2 * kEntryBytes), 1, kSegmentsMax);

  Layout layout{.block_bytes = block, .segments = segments};
  layout.table_block = drive::kLabelBlocks;
  layout.table_blocks = pages_of(segments) * page_bytes(block) / block;
  layout.key_block = layout.table_block + 2 * layout.table_blocks;
  layout.key_buckets =
      std::clamp<uint64_t>(segments * kKeyLogPercent / 100, kKeyBucketsMin, kKeyBucketsMax);
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
