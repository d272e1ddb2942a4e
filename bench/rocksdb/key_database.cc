// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/key_database.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bench/rocksdb/rocksdb_common.h"
#include "bench/workload.h"

namespace cairn::bench {

using loadgen::KeyLoad;
using loadgen::KeyLoadResult;
using loadgen::KeyOperation;
using loadgen::KeyOperations;

namespace {

// What the threads of one run share.
class Operations {
 public:
  explicit Operations(const KeyLoad& load)
      : operations_(load.mix, load.draw()),
        left_(load.operations_max == 0 ? UINT64_MAX : load.operations_max),
        rate_(load.rate),
        start_(now()),
        end_(start_ + load.duration) {}

  struct Next {
    KeyOperation operation;
    Time from;  // when it is due; in closed loop now
  };
  std::optional<Next> next() {
    const std::lock_guard lock(mutex_);
    if (has_failed_ || left_ == 0) return std::nullopt;
    Time from = now();
    if (rate_ > 0) from = start_ + Duration::from_seconds(static_cast<double>(sent_) / rate_);
    if (from >= end_) return std::nullopt;
    --left_;
    ++sent_;
    return Next{.operation = operations_.next(), .from = from};
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    has_failed_ = true;
  }

 private:
  std::mutex mutex_;
  KeyOperations operations_;
  uint64_t left_;
  uint64_t sent_ = 0;
  const double rate_;
  const Time start_;
  const Time end_;
  bool has_failed_ = false;
};

}  // namespace

class KeyDatabase::Impl {
 public:
  Result<void> open(const KeyDatabasePlace& place) {
    rocksdb::Options options = common_options();
    options.create_if_missing = true;
    options.use_direct_reads = place.direct;
    options.use_direct_io_for_flush_and_compaction = place.direct;
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(place.cache_bytes);
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    writes_.sync = place.syncs_writes;
    rocksdb::DB* db = nullptr;
    const Result<void> opened = result_of(rocksdb::DB::Open(options, place.folder + "/keys", &db));
    db_.reset(db);
    return opened;
  }

  Result<void> fill(const KeyLoad& load) {
    rocksdb::WriteOptions unlogged;  // the flush at the end keeps them
    unlogged.disableWAL = true;
    for (uint64_t record = 0; record < load.records; ++record) {
      Result<void> put = result_of(db_->Put(unlogged, loadgen::key_of_record(record),
                                            loadgen::value_of_record(record, load.value_bytes)));
      if (!put) return put;
    }
    if (Result<void> done = result_of(db_->Flush(rocksdb::FlushOptions())); !done) return done;
    return result_of(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
  }

  Result<KeyLoadResult> run(const KeyLoad& load) {
    Operations operations(load);
    std::vector<KeyLoadResult> parts(load.depth);
    const Time start = now();
    {
      std::vector<std::jthread> threads;
      threads.reserve(parts.size());
      for (KeyLoadResult& part : parts) {
        threads.emplace_back([this, &load, &operations, &part] { work(load, operations, part); });
      }
    }
    KeyLoadResult all;
    all.measured = now() - start;
    for (const KeyLoadResult& part : parts) {
      if (part.error) all.error = part.error;
      all.operations += part.operations;
      all.read_latency_ns.merge(part.read_latency_ns);
      all.write_latency_ns.merge(part.write_latency_ns);
    }
    return all;
  }

 private:
  void work(const KeyLoad& load, Operations& operations, KeyLoadResult& into) {
    while (const std::optional<Operations::Next> next = operations.next()) {
      const Duration early = next->from - now();
      if (early.ns > 0) pass_time(early);
      const Result<void> done = carry_out(load, next->operation);
      if (!done) {
        into.error = done.error();
        operations.stop();
        return;
      }
      ++into.operations;
      const bool reads = next->operation.kind == KeyOperation::Kind::kRead;
      const auto took = static_cast<uint64_t>(std::max<int64_t>((now() - next->from).ns, 0));
      (reads ? into.read_latency_ns : into.write_latency_ns).record(took);
    }
  }

  Result<void> carry_out(const KeyLoad& load, KeyOperation operation) {
    using Kind = KeyOperation::Kind;
    const std::string key = loadgen::key_of_record(operation.record);
    if (operation.kind == Kind::kRead || operation.kind == Kind::kChange) {
      std::string value;
      const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), key, &value);
      if (!status.IsNotFound()) {
        if (Result<void> got = result_of(status); !got) return got;
      }
      const bool is_right = status.IsNotFound() ? operation.record >= load.records
                                                : loadgen::is_value_of(operation.record, value);
      if (!is_right) {
        return fail(Errc::kCorrupt, "a record that was put is not there, or is another");
      }
    }
    if (operation.kind == Kind::kRead) return {};
    return result_of(
        db_->Put(writes_, key, loadgen::value_of_record(operation.record, load.value_bytes)));
  }

  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions writes_;
};

KeyDatabase::KeyDatabase(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KeyDatabase::~KeyDatabase() = default;

Result<std::unique_ptr<KeyDatabase>> KeyDatabase::open(const KeyDatabasePlace& place) {
  auto impl = std::make_unique<Impl>();
  if (const Result<void> opened = impl->open(place); !opened) return fail(opened.error());
  return std::unique_ptr<KeyDatabase>(new KeyDatabase(std::move(impl)));
}

Result<void> KeyDatabase::fill(const KeyLoad& load) { return impl_->fill(load); }
Result<KeyLoadResult> KeyDatabase::run(const KeyLoad& load) { return impl_->run(load); }

}  // namespace cairn::bench
