// SPDX-License-Identifier: Apache-2.0
// What dedup keeps on the drive below: a label whose body is a MappedLayout, a journal of
// DedupRecords, and units of a block (mapped_format.h).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/label.h"
#include "service/mapped/mapped_format.h"

namespace cairn::drive {

inline constexpr LabelKind kDedupLabel{.service = "dedup", .version = 1};

// A block of the drive above and its unit, which several blocks may have. Numbers are
// little-endian.
struct DedupRecord {
  uint32_t block = 0;
  uint32_t unit = 0;  // counted from 1; 0: the block is a hole
  uint64_t hash = 0;  // of the unit's contents
};
static_assert(sizeof(DedupRecord) == 16);

// kCorrupt: another size, or a block or unit that there is not.
Result<DedupRecord> decode_dedup_record(Bytes bytes, const MappedLayout& layout);

}  // namespace cairn::drive
