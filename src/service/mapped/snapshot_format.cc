// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/snapshot_format.h"

namespace cairn::drive {

namespace {

bool is_kind(uint32_t kind) {
  return (kind >= SnapshotRecord::kEpochs && kind <= SnapshotRecord::kInClone) ||
         (kind >= SnapshotRecord::kSet && kind <= SnapshotRecord::kSavedTo);
}

bool may_have_name(uint32_t kind) {
  return kind == SnapshotRecord::kVersion || kind == SnapshotRecord::kClone ||
         kind == SnapshotRecord::kTake || kind == SnapshotRecord::kMakeClone;
}

}  // namespace

std::vector<std::byte> encode_snapshot_record(const SnapshotRecord& record, std::string_view name) {
  std::vector<std::byte> bytes(sizeof record + name.size());
  store(MutableBytes(bytes), record);
  std::ranges::copy(as_bytes(name), bytes.begin() + sizeof record);
  return bytes;
}

Result<NamedSnapshotRecord> decode_snapshot_record(Bytes bytes) {
  const auto damaged = fail(Errc::kCorrupt, "the map of versions is damaged");
  if (bytes.size() < sizeof(SnapshotRecord)) return damaged;
  const auto record = load<SnapshotRecord>(bytes);
  const std::string_view name = as_text(bytes.subspan(sizeof record));
  if (!is_kind(record.kind) || name.size() > kSnapshotNameMax) return damaged;
  if (!name.empty() && !may_have_name(record.kind)) return damaged;
  return NamedSnapshotRecord{.record = record, .name = name};
}

}  // namespace cairn::drive
