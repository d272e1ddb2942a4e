// SPDX-License-Identifier: Apache-2.0
// What all that rewrite segments share: the lock, and leaving out what has expired.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "kv/store/core.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::store {

// What an item's key and value take in the value log.
inline uint64_t units_of(const Item& item) {
  return record_units(item.key_bytes, item.value_bytes);
}

// Drops items that have expired, and counts them in the write's deltas.
void purge_expired(Core& core, SegmentWrite& write);

// One segment with its lock, room for it in the key log, and its items.
struct LockedSegment {
  task::Units lock;
  Room room;
  SegmentWrite write;
};
// Waits for room first, then for the lock, then reads. kCancelled by the token; kCorrupt.
task::Task<Result<LockedSegment>> lock_segment(Core& core, uint32_t segment, LogSpace::User user,
                                               task::CancelToken token);

// Commits the segment; its room is used up.
task::Task<Result<void>> commit_segment(Core& core, LockedSegment& segment, KeyLog::Values values);

}  // namespace cairn::kv::store
