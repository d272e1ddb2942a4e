// SPDX-License-Identifier: Apache-2.0
// What spillover keeps on its two drives.
//
//   local drive        the label, its body a SpilloverBody; a journal of SpilloverRecords; units
//   drive elsewhere    the label, of the same id, with the same body but for its role; units from
//                      elsewhere_first on
//
// Numbers are little-endian.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "drive/drive.h"
#include "service/common/label.h"
#include "service/mapped/mapped_format.h"

namespace cairn::drive {

inline constexpr LabelKind kSpilloverLabel{.service = "spillover", .version = 1};
// Of either drive: places have a bit that says where they are.
inline constexpr uint64_t kSpilloverUnitsMax = (uint64_t{1} << 31) - 2;

// The body of both labels.
struct SpilloverBody {
  static constexpr uint64_t kLocal = 0;
  static constexpr uint64_t kElsewhere = 1;

  MappedLayout layout;  // of the local drive, and the size of the whole
  uint64_t elsewhere_first = 0;
  uint64_t elsewhere_units = 0;
  uint64_t role = kLocal;

  // Of the drive above. One unit is not shown: a chunk that drains has two for a while.
  uint64_t blocks() const { return (layout.units + elsewhere_units - 1) * layout.chunk_blocks; }
  uint64_t end_elsewhere() const { return elsewhere_first + elsewhere_units * layout.chunk_blocks; }
  Units::Options place_elsewhere() const {
    return {.first = elsewhere_first, .blocks = layout.chunk_blocks, .count = elsewhere_units};
  }
};
static_assert(sizeof(SpilloverBody) == 72);

// A chunk and its place.
struct SpilloverRecord {
  static constexpr uint32_t kElsewhere = uint32_t{1} << 31;
  uint32_t chunk = 0;
  uint32_t place = 0;  // the unit, counted from 1, with kElsewhere added; 0: it is a hole again
};
static_assert(sizeof(SpilloverRecord) == 8);

std::vector<std::byte> encode_spillover_body(const SpilloverBody& body);
// kCorrupt: another size, or a role that there is not.
Result<SpilloverBody> decode_spillover_body(Bytes bytes);
// kCorrupt: its numbers do not fit the local drive, or each other.
Result<void> check_spillover_body(const SpilloverBody& body, const Geometry& local);

// kCorrupt: another size, or a chunk or unit that there is not.
Result<SpilloverRecord> decode_spillover_record(Bytes bytes, const SpilloverBody& body);

}  // namespace cairn::drive
