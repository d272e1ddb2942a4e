// SPDX-License-Identifier: Apache-2.0
// What snapshot keeps on the drive below: a label whose body is a MappedLayout, a journal of
// SnapshotRecords, and units (mapped_format.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/label.h"

namespace cairn::drive {

inline constexpr LabelKind kSnapshotLabel{.service = "snapshot", .version = 1};
inline constexpr size_t kSnapshotNameMax = 32;

// A record of the journal; the name of a version or clone, if it has one, follows. Numbers are
// little-endian.
struct SnapshotRecord {
  enum Kind : uint32_t {
    // Of a checkpoint, what there is: versions and clones, then the entries chunk by chunk, oldest
    // first. (Older ones had all kept entries first, and the clones last.)
    kEpochs = 1,  // number: the epoch; unit: the number of the next clone
    kVersion,     // number; named
    kClone,       // number; chunk: the version it stands on; named
    kKept,        // an entry that a version sees: chunk, unit; number: its epoch
    kNewest,      // the newest entry of a chunk: chunk, unit; number: its epoch
    kInClone,     // chunk, unit; number: the clone
    // What was changed.
    kSet = 16,    // chunk, unit
    kSetInClone,  // chunk, unit; number: the clone
    kTake,        // named, or not
    kRemove,      // number: the version
    kRollback,    // number: the version
    kMakeClone,   // number: the version it stands on; named
    kDropClone,   // number: the clone
    kSavedTo,     // of a checkpoint: it has told of the chunks before `chunk`; kAll: of all
  };
  static constexpr uint32_t kAll = UINT32_MAX;
  uint32_t kind = 0;
  uint32_t chunk = 0;
  uint32_t unit = 0;  // counted from 1
  uint32_t number = 0;
};
static_assert(sizeof(SnapshotRecord) == 16);

// What is kept of each unit at most, for the size of the journal: an entry and a hole that hides
// it, a hole of a clone, and a part of the versions' names.
inline constexpr uint64_t kSnapshotRecordsPerUnit = 4;
inline constexpr uint64_t kSnapshotRecordsMore = 80;
inline uint64_t snapshot_versions_max(uint64_t units) {
  return std::min<uint64_t>(1024, 8 + units / 8);
}

std::vector<std::byte> encode_snapshot_record(const SnapshotRecord& record, std::string_view name);

struct NamedSnapshotRecord {
  SnapshotRecord record;
  std::string_view name;  // borrowed from what was decoded
};
// kCorrupt: too short or too long, of no kind, or with a name though its kind has none. What the
// numbers mean is for the map to judge.
Result<NamedSnapshotRecord> decode_snapshot_record(Bytes bytes);

}  // namespace cairn::drive
