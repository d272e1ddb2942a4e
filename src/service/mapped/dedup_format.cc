// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/dedup_format.h"

namespace cairn::drive {

Result<DedupRecord> decode_dedup_record(Bytes bytes, const MappedLayout& layout) {
  const auto damaged = fail(Errc::kCorrupt, "the map is damaged");
  if (bytes.size() != sizeof(DedupRecord)) return damaged;
  const auto record = load<DedupRecord>(bytes);
  if (record.block >= layout.blocks || record.unit > layout.units) return damaged;
  return record;
}

}  // namespace cairn::drive
