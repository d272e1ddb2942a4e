// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/thin_format.h"

namespace cairn::drive {

Result<ThinRecord> decode_thin_record(Bytes bytes, const MappedLayout& layout) {
  if (bytes.size() != sizeof(ThinRecord)) return fail(Errc::kCorrupt, "the map is damaged");
  const auto record = load<ThinRecord>(bytes);
  if (record.chunk >= layout.chunks()) {
    return fail(Errc::kCorrupt, "the map names a chunk beyond the end of the drive");
  }
  if (record.unit > layout.units) {
    return fail(Errc::kCorrupt, "the map names a unit beyond the end of the drive below");
  }
  return record;
}

}  // namespace cairn::drive
