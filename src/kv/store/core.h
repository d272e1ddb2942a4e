// SPDX-License-Identifier: Apache-2.0
// Core: the parts of an open store, for those of its classes that work on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "kv/keyspace.h"
#include "kv/store/block_io.h"
#include "kv/store/durability.h"
#include "kv/store/key_hash.h"
#include "kv/store/key_log.h"
#include "kv/store/limits.h"
#include "kv/store/log_space.h"
#include "kv/store/options.h"
#include "kv/store/segment_locks.h"
#include "kv/store/segment_table.h"
#include "kv/store/table_format.h"
#include "kv/store/value_log.h"
#include "service/common/label.h"
#include "task/cancel.h"
#include "task/sync.h"

namespace cairn::kv::store {

// What was found on a drive.
struct Recovered {
  drive::Label label;
  Superblock superblock;
  SegmentTable table;
  Totals totals;
  uint64_t next_version = 1;
  LogSpace::Ends keys;
  LogSpace::Ends values;
  uint64_t scanned = 0;  // buckets of the key log behind the checkpoint
  struct Blocks {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  std::vector<Blocks> unsettled;  // of batches and values that may not be durable
};

struct Core {
  Core(env::Env& its_env, std::unique_ptr<drive::Drive> its_drive, const StoreOptions& its_options,
       Recovered recovered);

  // Of a store that does not open after all.
  std::unique_ptr<drive::Drive> take_drive() { return std::move(drive); }
  KeyHash hash(std::string_view key) const {
    return hash_of(superblock.hash_key, superblock.layout.segments, key);
  }
  uint64_t now_ms() const { return static_cast<uint64_t>(env.wall_now().ns / 1'000'000); }
  bool has_expired(const Item& item) const {
    return item.expires_ms != 0 && item.expires_ms <= now_ms();
  }
  // A change was refused for want of space.
  void want_purge() {
    purge_wanted = true;
    key_space.low().set();
  }
  // The key log has grown.
  void note_commit() {
    if (key_space.tail() - key_space.pinned() >= checkpoint_every) checkpoint_wanted.set();
  }
  uint64_t position_of(const Item& item) const { return value_space.position_of(item.place); }

  env::Env& env;
  std::unique_ptr<drive::Drive> drive;
  const StoreOptions options;
  drive::Label label;
  Superblock superblock;
  BlockIo io;
  Syncer syncer;
  SegmentTable table;
  Totals totals;
  uint64_t next_version;
  uint64_t pending_units = 0;  // of changes under way
  LogSpace key_space;
  LogSpace value_space;
  const uint64_t checkpoint_every;
  SegmentLocks locks;
  std::unique_ptr<ValueLog> values;
  std::unique_ptr<KeyLog> keys;
  task::CancelSource stopping;
  bool purge_wanted = false;  // a change was refused: expired keys may hold the space it wants
  task::Event checkpoint_wanted;
  StoreStats stats;
};

}  // namespace cairn::kv::store
