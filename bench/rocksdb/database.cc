// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/database.h"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/rocksdb/file_system.h"
#include "bench/rocksdb/rocksdb_common.h"

namespace cairn::bench {

namespace {

constexpr const char* kPath = "/db";
constexpr size_t kTogether = 16;

std::string key_of(uint64_t number) { return fmt::format("{:016}", number); }

std::string value_of(uint64_t number, uint32_t size) {
  std::string value(size, '\0');
  Rng(number).fill(std::as_writable_bytes(std::span(value)));
  return value;
}

rocksdb::Options options_for(rocksdb::Env* env) {
  rocksdb::Options options = common_options();
  options.env = env;
  options.create_if_missing = true;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // the drive is what is measured
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

class Database::Impl {
 public:
  Impl(FlatFiles& files, const DatabaseLoad& load)
      : load_(load), env_(rocksdb::NewCompositeEnv(make_file_system(files))) {}

  Result<void> open() {
    rocksdb::DB* db = nullptr;
    const Result<void> opened = result_of(rocksdb::DB::Open(options_for(env_.get()), kPath, &db));
    db_.reset(db);
    return opened;
  }

  Result<void> fill_random() {
    Rng rng(1);
    for (uint64_t i = 0; i < load_.keys; ++i) {
      if (Result<void> done = put(rng.below(load_.keys)); !done) return done;
    }
    return result_of(db_->Flush(rocksdb::FlushOptions()));
  }

  Result<void> read_random() { return in_threads(&Impl::read_some); }
  Result<void> multi_read_random() { return in_threads(&Impl::read_some_together); }

  Result<void> read_while_writing() {
    std::atomic<bool> is_over = false;
    Result<void> written;
    Result<void> read;
    {
      const std::jthread writer([&] {
        Rng rng(2);
        while (!is_over && written) written = put(rng.below(load_.keys));
      });
      read = read_random();
      is_over = true;
    }
    return read ? written : read;
  }

  Result<void> compact() {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    return result_of(db_->CompactRange(options, nullptr, nullptr));
  }

 private:
  Result<void> put(uint64_t number) {
    return result_of(
        db_->Put(rocksdb::WriteOptions(), key_of(number), value_of(number, load_.value_size)));
  }

  // One thread's part of the reads.
  using Part = Result<void> (Impl::*)(uint32_t thread);
  Result<void> in_threads(Part part) {
    std::vector<Result<void>> results(load_.threads);
    {
      std::vector<std::jthread> threads;
      for (uint32_t i = 0; i < load_.threads; ++i) {
        threads.emplace_back([this, part, i, &result = results[i]] { result = (this->*part)(i); });
      }
    }
    for (const Result<void>& result : results) {
      if (!result) return result;
    }
    return {};
  }

  Result<void> read_some(uint32_t thread) {
    Rng rng(1000 + thread);
    std::string value;
    for (uint64_t i = 0; i < load_.reads / load_.threads; ++i) {
      const uint64_t number = rng.below(load_.keys);
      const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), key_of(number), &value);
      if (Result<void> right = check(number, status, value); !right) return right;
    }
    return {};
  }

  Result<void> read_some_together(uint32_t thread) {
    Rng rng(1000 + thread);
    for (uint64_t i = 0; i < load_.reads / load_.threads; i += kTogether) {
      std::vector<uint64_t> numbers(kTogether);
      std::vector<std::string> keys;
      for (uint64_t& number : numbers) {
        number = rng.below(load_.keys);
        keys.push_back(key_of(number));
      }
      const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
      std::vector<rocksdb::PinnableSlice> values(kTogether);
      std::vector<rocksdb::Status> statuses(kTogether);
      db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), kTogether, slices.data(),
                    values.data(), statuses.data());
      for (size_t k = 0; k < kTogether; ++k) {
        const Result<void> right = check(numbers[k], statuses[k], values[k].ToStringView());
        if (!right) return right;
      }
    }
    return {};
  }

  Result<void> check(uint64_t number, const rocksdb::Status& status, std::string_view value) {
    if (status.IsNotFound()) return {};  // fill_random never drew it
    if (Result<void> got = result_of(status); !got) return got;
    if (value != value_of(number, load_.value_size)) {
      return fail(Errc::kCorrupt, "RocksDB gave another value than was put");
    }
    return {};
  }

  const DatabaseLoad load_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
};

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::open(FlatFiles& files, const DatabaseLoad& load) {
  auto impl = std::make_unique<Impl>(files, load);
  if (const Result<void> opened = impl->open(); !opened) return fail(opened.error());
  return std::unique_ptr<Database>(new Database(std::move(impl)));
}

Result<void> Database::fill_random() { return impl_->fill_random(); }
Result<void> Database::read_random() { return impl_->read_random(); }
Result<void> Database::multi_read_random() { return impl_->multi_read_random(); }
Result<void> Database::read_while_writing() { return impl_->read_while_writing(); }
Result<void> Database::compact() { return impl_->compact(); }

}  // namespace cairn::bench
