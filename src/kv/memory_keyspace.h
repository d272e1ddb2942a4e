// SPDX-License-Identifier: Apache-2.0
// MemoryKeyspace: a Keyspace in this process's memory, and gone with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "env/env.h"
#include "kv/key_table.h"
#include "kv/keyspace.h"
#include "task/task.h"
#include "task/timer.h"

namespace cairn::kv {

struct MemoryKeyspaceOptions {
  uint64_t bytes_max = UINT64_MAX;  // of keys, values and what keeps them; then kNoSpace
};

// No call waits. Keys whose end has come are erased within a second, a few at a time.
class MemoryKeyspace final : public Keyspace {
 public:
  explicit MemoryKeyspace(env::Env& env, const MemoryKeyspaceOptions& options = {});

  task::Task<Result<std::optional<Entry>>> get(std::string_view key) override;
  task::Task<Result<std::optional<Meta>>> look(std::string_view key) override;
  task::Task<Result<void>> transact(std::span<const std::string_view> keys,
                                    Change& change) override;
  task::Task<Result<ScanPage>> scan(uint64_t cursor, size_t count) override;
  task::Task<Result<std::optional<std::string>>> random_key() override;
  task::Task<Result<void>> clear() override;
  uint64_t size() const override { return table_.size(); }

  // What keys and values take, as bytes_max counts it.
  uint64_t bytes() const { return bytes_; }

 private:
  struct SweepTimer : task::Timer {
    using Timer::Timer;
    MemoryKeyspace* keyspace = nullptr;
  };
  static void on_sweep(task::Timer& timer);

  // A record that is there; one whose end has come goes.
  Record* find(std::string_view key, WallTime now);
  std::vector<std::optional<Entry>> entries(std::span<const std::string_view> keys,
                                            Change::Needs needs, WallTime now);
  Result<void> check(std::span<const std::string_view> keys, std::span<const Edit> edits,
                     WallTime now);
  void apply(std::string_view key, Edit& edit, WallTime now);
  void set_expiry(Record& record, WallTime expires);
  void erase(Record& record);
  void sweep();
  void arm_sweep(WallTime now);

  env::Env& env_;
  const uint64_t bytes_max_;
  KeyTable table_;
  uint64_t version_ = 0;  // the last that was given
  uint64_t bytes_ = 0;
  std::map<std::pair<WallTime, uint64_t>, Record*> expiring_;  // by their end and version
  SweepTimer sweep_;
};

}  // namespace cairn::kv
