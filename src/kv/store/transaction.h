// SPDX-License-Identifier: Apache-2.0
// Transaction: one change of some keys, from its locks to its commit.
//
//   reserve buckets -> lock segments -> [read segments, values] -> decide -> reserve units
//     -> append values, and meanwhile read segments -> apply -> commit -> unlock
//
// It waits for room only without locks, because compaction, which makes room, needs them. Where
// room is missing after decide(), it unlocks, waits, locks again and goes on if nobody changed what
// decide() was told.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kv/keyspace.h"
#include "kv/store/core.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::store {

class Transaction {
 public:
  // Keys of 1 to kKeyBytesMax bytes. All outlive it.
  Transaction(Core& core, std::span<const std::string_view> keys, Change& change);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Once. As Keyspace::transact(). kTimedOut: compaction made no room in time; kLimit: more keys
  // than one commit holds. `token` ends waiting for room.
  task::Task<Result<void>> run(task::CancelToken token);

 private:
  struct Target {
    KeyHash hash;
    size_t part = 0;
    uint64_t version = 0;   // of what kPut writes
    uint64_t position = 0;  // of its record
  };
  // A segment with some of the keys.
  struct Part {
    SegmentWrite write;
    size_t targets = 0;
    bool is_changed = false;
  };

  task::Task<Result<void>> lock(task::CancelToken token);
  void unlock() { held_.clear(); }
  uint64_t buckets_needed() const;
  task::Task<Result<void>> read_segment(Part& part);
  task::Task<Result<void>> read_segments();
  task::Task<Result<void>> read_values();
  std::vector<std::optional<Item>> items_now() const;
  task::Task<Result<void>> prepare(task::CancelToken token);
  task::Task<Result<void>> look();
  Result<void> decide();
  Result<uint64_t> units_needed() const;
  task::Task<Result<void>> reserve_units(task::CancelToken token);
  task::Task<Result<void>> wait_for_units(uint64_t units, task::CancelToken token);
  task::Task<Result<void>> write_values();
  task::Task<Result<void>> write_value_of_one();
  task::Task<Result<void>> write_target(size_t n);
  Result<void> apply();
  void apply_to(Part& part, size_t target);
  task::Task<Result<void>> commit();

  Core& core_;
  const std::span<const std::string_view> keys_;
  Change& change_;
  std::vector<Target> targets_;  // one for each key
  std::vector<Part> parts_;      // in the order of their locks
  std::vector<task::Units> held_;
  Room buckets_;
  Room units_;
  uint64_t pending_units_ = 0;
  std::vector<std::optional<Entry>> now_;
  std::vector<Edit> edits_;
  KeyLog::Values values_;
  bool has_read_ = false;
};

}  // namespace cairn::kv::store
