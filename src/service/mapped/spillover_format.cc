// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/spillover_format.h"

namespace cairn::drive {

std::vector<std::byte> encode_spillover_body(const SpilloverBody& body) {
  std::vector<std::byte> bytes(sizeof body);
  store(MutableBytes(bytes), body);
  return bytes;
}

Result<SpilloverBody> decode_spillover_body(Bytes bytes) {
  if (bytes.size() != sizeof(SpilloverBody)) {
    return fail(Errc::kCorrupt, "the label has another size than this version writes");
  }
  const auto body = load<SpilloverBody>(bytes);
  if (body.role > SpilloverBody::kElsewhere) {
    return fail(Errc::kCorrupt, "the label makes no sense");
  }
  return body;
}

Result<void> check_spillover_body(const SpilloverBody& body, const Geometry& local) {
  const Result<MappedLayout> layout = decode_layout(encode_layout(body.layout), local);
  if (!layout) return fail(layout.error());
  if (body.elsewhere_units == 0 || body.elsewhere_units > kSpilloverUnitsMax ||
      layout->units > kSpilloverUnitsMax ||
      body.elsewhere_first != align_up(kLabelBlocks, layout->chunk_blocks) ||
      layout->blocks % layout->chunk_blocks != 0 ||
      layout->blocks / layout->chunk_blocks != layout->units + body.elsewhere_units - 1) {
    return fail(Errc::kCorrupt, "the label does not fit the drives below");
  }
  return {};
}

Result<SpilloverRecord> decode_spillover_record(Bytes bytes, const SpilloverBody& body) {
  if (bytes.size() != sizeof(SpilloverRecord)) return fail(Errc::kCorrupt, "the map is damaged");
  const auto record = load<SpilloverRecord>(bytes);
  if (record.chunk >= body.layout.chunks()) {
    return fail(Errc::kCorrupt, "the map names a chunk beyond the end of the drive");
  }
  if (record.place == 0) return record;
  const bool is_elsewhere = (record.place & SpilloverRecord::kElsewhere) != 0;
  const uint32_t unit = record.place & ~SpilloverRecord::kElsewhere;
  if (unit == 0 || unit > (is_elsewhere ? body.elsewhere_units : body.layout.units)) {
    return fail(Errc::kCorrupt, "the map names a unit that is none");
  }
  return record;
}

}  // namespace cairn::drive
