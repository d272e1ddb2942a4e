// SPDX-License-Identifier: Apache-2.0
// What thin keeps on the drive below: a label whose body is a MappedLayout, a journal of
// ThinRecords, and units (mapped_format.h).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/label.h"
#include "service/mapped/mapped_format.h"

namespace cairn::drive {

inline constexpr LabelKind kThinLabel{.service = "thin", .version = 1};

// A chunk and its unit. Numbers are little-endian.
struct ThinRecord {
  uint32_t chunk = 0;
  uint32_t unit = 0;  // counted from 1; 0: the chunk is a hole again
};
static_assert(sizeof(ThinRecord) == 8);

// kCorrupt: another size, or a chunk or unit that there is not.
Result<ThinRecord> decode_thin_record(Bytes bytes, const MappedLayout& layout);

}  // namespace cairn::drive
