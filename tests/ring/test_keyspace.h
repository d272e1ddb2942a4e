// SPDX-License-Identifier: Apache-2.0
// TestKeyspace: keys on a medium that outlives the process, with a while between a change's
// decision and its end. A crash in between keeps the change or loses it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "env/env.h"
#include "kv/keyspace.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv {

struct TestMedium {
  std::map<std::pair<uint64_t, std::string>, Entry> entries;  // by hash and key
  uint64_t version = 0;
  Duration get_time;   // of a read, more than other calls take
  Duration scan_time;  // of a page, more than other calls take
};

class TestKeyspace final : public Keyspace {
 public:
  TestKeyspace(env::Env& env, TestMedium& medium) : env_(env), medium_(medium) {}

  task::Task<Result<std::optional<Entry>>> get(std::string_view key) override;
  task::Task<Result<std::optional<Meta>>> look(std::string_view key) override;
  task::Task<Result<void>> transact(std::span<const std::string_view> keys,
                                    Change& change) override;
  task::Task<Result<ScanPage>> scan(uint64_t cursor, size_t count) override;
  task::Task<Result<std::optional<std::string>>> random_key() override;
  task::Task<Result<void>> clear() override;
  // Where a key lies in the order of scans.
  static uint64_t place(std::string_view key);
  uint64_t size() const override { return medium_.entries.size(); }

 private:
  struct Lock {
    task::Semaphore turn{1};
    size_t users = 0;
  };
  std::optional<Entry> find(std::string_view key) const;
  task::Task<Result<void>> wait();

  env::Env& env_;
  TestMedium& medium_;
  std::map<std::string, std::unique_ptr<Lock>> locks_;
};

}  // namespace cairn::kv
