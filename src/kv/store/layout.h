// SPDX-License-Identifier: Apache-2.0
// Layout: where on a drive a store keeps what, fixed when it is made.
//
//   label (2 blocks) | table, twice | key log | value log
//
// docs/kv.md, "Layout". A bucket is one block of the drive; values lie in units of kUnitBytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "drive/drive.h"

namespace cairn::kv::store {

inline constexpr uint64_t kUnitBytes = 16;
inline constexpr uint32_t kSegmentsMax = 0xfffffffe;
inline constexpr uint64_t kKeyBucketsMax = 0xffffffff;         // a place of a segment has 32 bits
inline constexpr uint64_t kValueUnitsMax = uint64_t{1} << 39;  // a place of a value has 39 bits

struct Layout {
  uint64_t block_bytes = 0;  // of the drive, and of a bucket
  uint64_t segments = 0;
  uint64_t table_block = 0;   // where the first of the two tables begins
  uint64_t table_blocks = 0;  // of each
  uint64_t key_block = 0;
  uint64_t key_buckets = 0;
  uint64_t value_block = 0;
  uint64_t value_units = 0;

  friend bool operator==(const Layout&, const Layout&) = default;
  uint64_t units_in_block() const { return block_bytes / kUnitBytes; }
};

// How a drive is divided if keys and their values have `object_bytes` together on average. Objects
// of another size fit too; then one of the two logs is full before the other. kInvalid: the drive
// is too small, or object_bytes is 0.
Result<Layout> plan_layout(const drive::Geometry& geometry, uint64_t object_bytes);

// Whether a layout that was read from a drive can be one of that drive.
bool is_sound(const Layout& layout, const drive::Geometry& geometry);

}  // namespace cairn::kv::store
