// SPDX-License-Identifier: Apache-2.0
// SlowKeyspace: a keyspace in memory whose calls take their time, each another one, as on a drive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "env/env.h"
#include "kv/memory_keyspace.h"
#include "task/deadline.h"

namespace cairn::door::resp {

class SlowKeyspace final : public kv::Keyspace {
 public:
  explicit SlowKeyspace(env::Env& env) : env_(env), keys_(env) {}

  task::Task<Result<std::optional<kv::Entry>>> get(std::string_view key) override {
    co_await take_time();
    Result<std::optional<kv::Entry>> found = co_await keys_.get(key);
    co_await take_time();
    co_return found;
  }
  task::Task<Result<std::optional<kv::Meta>>> look(std::string_view key) override {
    co_await take_time();
    Result<std::optional<kv::Meta>> found = co_await keys_.look(key);
    co_return found;
  }
  task::Task<Result<void>> transact(std::span<const std::string_view> keys,
                                    kv::Change& change) override {
    ++at_once_;
    at_once_max = std::max(at_once_max, at_once_);
    co_await take_time();
    Result<void> done = failure ? Result<void>(fail(*failure)) : Result<void>();
    if (done) done = co_await keys_.transact(keys, change);
    co_await take_time();
    --at_once_;
    co_return done;
  }
  task::Task<Result<kv::ScanPage>> scan(uint64_t cursor, size_t count) override {
    co_await take_time();
    Result<kv::ScanPage> page = co_await keys_.scan(cursor, count);
    co_return page;
  }
  task::Task<Result<std::optional<std::string>>> random_key() override {
    return keys_.random_key();
  }
  task::Task<Result<void>> clear() override { return keys_.clear(); }
  uint64_t size() const override { return keys_.size(); }

  std::optional<Error> failure;  // of every change
  size_t at_once_max = 0;        // changes

 private:
  task::Task<void> take_time() {
    const Duration time = 1_us * static_cast<int64_t>(env_.rng().below(200));
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env_, time);
  }

  env::Env& env_;
  kv::MemoryKeyspace keys_;
  size_t at_once_ = 0;
};

}  // namespace cairn::door::resp
