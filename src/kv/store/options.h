// SPDX-License-Identifier: Apache-2.0
// What a store is told when it is made and when it is opened, and what it says of itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "kv/store/block_io.h"
#include "kv/store/durability.h"

namespace cairn::kv::store {

struct FormatOptions {
  uint64_t object_bytes = 272;  // of a key and its value, on average (layout.h)
  bool may_format = false;      // also a drive that holds something else, which is lost
};

struct StoreOptions {
  Durability durability = Durability::kCommit;
  Duration sync_interval = 1_s;  // Durability::kInterval
  size_t commands_max = 1024;    // at work at once; more wait
  Duration put_wait_max = 2_s;   // for compaction to make room; then kTimedOut
  Duration io_timeout = 30_s;    // of each request to the drive
  size_t movers_max = 64;        // values that compaction moves at once
  // Buckets of the key log between checkpoints of the table; 0: as it suits the drive.
  uint64_t checkpoint_every = 0;
};

struct StoreStats {
  uint64_t keys = 0;
  uint64_t live_bytes = 0;      // of the value log, that keys point to
  uint64_t live_bytes_max = 0;  // more are refused
  uint64_t table_bytes = 0;     // of memory
  uint64_t commands = 0;        // done, of all kinds
  uint64_t user_bytes = 0;      // keys and values of changes
  IoStats io;                   // io.bytes_written / user_bytes: write amplification
  uint64_t checkpoints = 0;
  uint64_t key_buckets_moved = 0;  // by compaction
  uint64_t values_moved = 0;
  uint64_t expired = 0;      // keys whose space came back
  uint64_t damaged = 0;      // segments and values that compaction found damaged
  uint64_t unlisted = 0;     // the same, that a scan passed, because it could not tell their keys
  uint64_t space_waits = 0;  // changes that waited for compaction
};

}  // namespace cairn::kv::store
