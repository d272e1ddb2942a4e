// SPDX-License-Identifier: Apache-2.0
// What tests of the store share: one on a simulated disk, and the words to use it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "drive/filter_drive.h"
#include "kv/keyspace.h"
#include "kv/store/store.h"
#include "testing/stack/stacks.h"

namespace cairn::kv::store {

struct DriveCounts {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t flushes = 0;
};

// Counts what reaches the drive below.
class CountingDrive final : public drive::FilterDrive {
 public:
  CountingDrive(std::unique_ptr<drive::Drive> below, DriveCounts& counts)
      : FilterDrive(std::move(below)), counts_(counts) {}

 private:
  void start(drive::DriveOp& op) override {
    using Kind = drive::Request::Kind;
    if (op.request.kind == Kind::kRead) ++counts_.reads;
    if (op.request.kind == Kind::kWrite) ++counts_.writes;
    if (op.request.kind == Kind::kFlush) ++counts_.flushes;
    pass(op);
  }
  DriveCounts& counts_;
};

class PutChange final : public Change {
 public:
  PutChange(std::vector<std::string> values, std::optional<WallTime> expires)
      : Change(Needs::kNothing), values_(std::move(values)), expires_(expires) {}
  Result<void> decide(std::span<const std::optional<Entry>>, std::span<Edit> edits) override {
    for (size_t i = 0; i < edits.size(); ++i) {
      edits[i] = {.kind = Edit::Kind::kPut, .value = values_[i], .expires = expires_};
    }
    return {};
  }

 private:
  const std::vector<std::string> values_;
  const std::optional<WallTime> expires_;
};

class EraseChange final : public Change {
 public:
  EraseChange() : Change(Needs::kNothing) {}
  Result<void> decide(std::span<const std::optional<Entry>>, std::span<Edit> edits) override {
    for (Edit& edit : edits) edit.kind = Edit::Kind::kErase;
    return {};
  }
};

// Puts behind each value what is given.
class AppendChange final : public Change {
 public:
  explicit AppendChange(std::string more) : Change(Needs::kValues), more_(std::move(more)) {}
  Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
    for (size_t i = 0; i < edits.size(); ++i) {
      edits[i] = {.kind = Edit::Kind::kPut, .value = (now[i] ? now[i]->value : "") + more_};
    }
    return {};
  }

 private:
  const std::string more_;
};

inline task::Task<Result<void>> put(Keyspace& store, std::string key, std::string value,
                                    std::optional<WallTime> expires = {}) {
  PutChange change({std::move(value)}, expires);
  const std::string_view view = key;
  Result<void> done = co_await store.transact({&view, 1}, change);
  co_return done;
}
inline task::Task<Result<void>> put_all(Keyspace& store, std::vector<std::string> keys,
                                        std::string value) {
  PutChange change(std::vector<std::string>(keys.size(), value), {});
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  Result<void> done = co_await store.transact(views, change);
  co_return done;
}
inline task::Task<Result<void>> erase(Keyspace& store, std::string key) {
  EraseChange change;
  const std::string_view view = key;
  Result<void> done = co_await store.transact({&view, 1}, change);
  co_return done;
}
// The value; "(none)": no such key; "(error: ...)".
inline task::Task<std::string> value_of(Keyspace& store, std::string key) {
  Result<std::optional<Entry>> entry = co_await store.get(key);
  if (!entry) co_return "(error: " + entry.error().text() + ")";
  co_return *entry ? (*entry)->value : "(none)";
}

template <class T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : result.error().text();
}

// As drive::run_in_sim, with disks whose blocks may be as small as that.
template <class Body>
void run_with_small_blocks(Body body) {
  sim::Cluster cluster({.disk = {.block_size = 512}});
  drive::run_in_sim(cluster, body);
}

inline constexpr const char* kSmallDisk = "file:d,size=4M,block=512";

// A store on a disk, which stays when it is closed or lost.
struct OnDisk {
  drive::SourceLeaves leaves;
  DriveCounts counts;
  std::unique_ptr<Store> store;

  task::Task<Result<void>> make(env::Env& env, std::string disk, FormatOptions options = {}) {
    const std::unique_ptr<drive::Drive> drive = co_await drive::must_open(env, disk, leaves);
    Result<void> made = co_await format(env, *drive, options);
    co_await drive->close();
    leaves.close();
    co_return made;
  }
  task::Task<Result<void>> open(env::Env& env, std::string disk, StoreOptions options = {}) {
    std::unique_ptr<drive::Drive> drive = co_await drive::must_open(env, disk, leaves);
    auto counting = std::make_unique<CountingDrive>(std::move(drive), counts);
    Result<std::unique_ptr<Store>> opened = co_await Store::open(env, std::move(counting), options);
    if (!opened) {
      leaves.close();
      co_return fail(opened.error());
    }
    store = std::move(*opened);
    co_return Result<void>();
  }
  task::Task<void> close() {
    co_await store->close();
    store = nullptr;
    leaves.close();
  }
};

}  // namespace cairn::kv::store
