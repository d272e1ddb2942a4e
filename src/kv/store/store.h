// SPDX-License-Identifier: Apache-2.0
// Store: keys and values on a drive, found by 5 bytes of memory for each segment of keys.
//
//   Result<void> made = co_await format(env, *drive, {});
//   Result<std::unique_ptr<Store>> store = co_await Store::open(env, std::move(drive), {});
//   ...
//   co_await (*store)->close();
//
// A GET costs two accesses of the drive, a PUT three, a DEL two. Contract and layout: docs/kv.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "kv/keyspace.h"
#include "kv/store/checkpoint.h"
#include "kv/store/core.h"
#include "kv/store/key_compactor.h"
#include "kv/store/options.h"
#include "kv/store/value_compactor.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::store {

// Makes an empty store of a drive. kInvalid: the drive is too small, or holds something else
// (drive/blank.h); kExists: it holds a store. Both are lost with `may_format`. Errors of the drive.
task::Task<Result<void>> format(env::Env& env, drive::Drive& drive, FormatOptions options);

// On the core that opened it. Beyond Keyspace's errors a change ends with kTimedOut when compaction
// made no room in time, and with kLimit when it has more keys than one commit holds.
class Store final : public Keyspace {
 public:
  // Errors as recover() (recovery.h); the drive is closed then. Another process that has it open
  // commits nothing more once it looks (label.h).
  static task::Task<Result<std::unique_ptr<Store>>> open(env::Env& env,
                                                         std::unique_ptr<drive::Drive> drive,
                                                         StoreOptions options);
  explicit Store(std::unique_ptr<Core> core);

  task::Task<Result<std::optional<Entry>>> get(std::string_view key) override;
  task::Task<Result<std::optional<Meta>>> look(std::string_view key) override;
  task::Task<Result<void>> transact(std::span<const std::string_view> keys,
                                    Change& change) override;
  task::Task<Result<ScanPage>> scan(uint64_t cursor, size_t count) override;
  task::Task<Result<std::optional<std::string>>> random_key() override;
  task::Task<Result<void>> clear() override;
  uint64_t size() const override { return core_->totals.keys; }

  StoreStats stats() const;
  // Makes all that was acknowledged durable, in every mode.
  task::Task<Result<void>> sync() { return core_->keys->sync(); }

  // Ends what is under way, saves the table and closes the drive. Once; commands that come later
  // end with kClosed.
  task::Task<void> close();

 private:
  class Admission;
  task::Task<Result<void>> lock_all(std::vector<task::Units>& held);
  task::Task<Result<std::optional<std::string>>> key_of_item(uint32_t segment, Item item);
  task::Task<Result<void>> scan_segment(uint32_t segment, ScanPage& page);
  task::Task<Result<std::optional<std::string>>> any_key_of(uint32_t segment);
  task::Task<void> save_checkpoints();
  task::Task<void> sync_at_intervals();

  const std::unique_ptr<Core> core_;
  Checkpointer checkpointer_;
  KeyCompactor key_compactor_;
  ValueCompactor value_compactor_;
  task::Semaphore commands_;
  task::Gate gate_;        // of commands
  task::Gate background_;  // of what the store does by itself
};

}  // namespace cairn::kv::store
