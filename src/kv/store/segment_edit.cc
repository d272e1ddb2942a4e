// SPDX-License-Identifier: Apache-2.0
#include "kv/store/segment_edit.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace cairn::kv::store {

using task::Task;

void purge_expired(Core& core, SegmentWrite& write) {
  std::erase_if(write.items, [&](const Item& item) {
    if (!core.has_expired(item)) return false;
    --write.key_delta;
    write.unit_delta -= static_cast<int32_t>(units_of(item));
    ++core.stats.expired;
    return true;
  });
}

Task<Result<LockedSegment>> lock_segment(Core& core, uint32_t segment, LogSpace::User user,
                                         task::CancelToken token) {
  LockedSegment locked{.write = {.segment = segment}};
  while (true) {
    const uint64_t needed = std::max<uint64_t>(core.table.at(segment).length, 1);
    const Result<void> reserved = co_await core.key_space.reserve(needed, user, token);
    if (!reserved) co_return fail(reserved.error());
    locked.room = Room(core.key_space, needed);
    task::Semaphore& one = core.locks.of(segment);
    const Result<void> acquired = co_await one.acquire(1, token);
    if (!acquired) co_return fail(acquired.error());
    locked.lock = task::Units(one, 1);
    if (core.table.at(segment).length <= needed) break;
    locked.lock.release();
    locked.room.release();
  }
  const Result<KeyLog::Chain> chain = co_await core.keys->read(segment, core.table.at(segment));
  if (!chain) co_return fail(chain.error());
  append_items(chain->buckets, core.io.block_bytes(), locked.write.items);
  co_return std::move(locked);
}

Task<Result<void>> commit_segment(Core& core, LockedSegment& segment, KeyLog::Values values) {
  const std::span<const SegmentWrite> writes(&segment.write, 1);
  const uint64_t buckets = core.keys->buckets_of_all(writes);
  const Result<void> done = co_await core.keys->commit(writes, values);
  if (done) {
    segment.room.used(buckets);
    core.note_commit();
  }
  co_return done;
}

}  // namespace cairn::kv::store
