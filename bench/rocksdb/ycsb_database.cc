// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/ycsb_database.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <latch>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/rocksdb/rocksdb_common.h"
#include "bench/rocksdb/ycsb_record.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

// Beside the records: how many there are, and how often the database was opened, as
// "RECORDS OPENED".
constexpr const char* kAbout = "about";

struct About {
  uint64_t records = 0;
  uint64_t opened = 0;
};

std::string text_of(const About& about) {
  return fmt::format("{} {}", about.records, about.opened);
}

Result<About> parse_about(std::string_view text) {
  About about;
  const char* end = text.data() + text.size();
  const auto records = std::from_chars(text.data(), end, about.records);
  if (records.ec == std::errc() && records.ptr != end && *records.ptr == ' ') {
    const auto opened = std::from_chars(records.ptr + 1, end, about.opened);
    const bool holds = about.records >= 3 && about.records <= kYcsbRecordsMax;
    if (opened.ec == std::errc() && opened.ptr == end && holds) return about;
  }
  return fail(Errc::kCorrupt, "what the database says about itself makes no sense");
}

rocksdb::Options options_for(const YcsbPlace& place) {
  rocksdb::Options options = common_options();
  options.use_direct_reads = place.direct;
  options.use_direct_io_for_flush_and_compaction = place.direct;
  rocksdb::BlockBasedTableOptions table;
  if (place.cache_bytes == 0) {
    table.no_block_cache = true;
  } else {
    table.block_cache = rocksdb::NewLRUCache(place.cache_bytes);
  }
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

double YcsbFigures::per_second() const {
  const auto done = static_cast<double>(read_ns.count() + update_ns.count());
  return seconds > 0 ? done / seconds : 0;
}

class YcsbDatabase::Impl {
 public:
  explicit Impl(const YcsbPlace& place)
      : place_(place), path_(place.folder + "/ycsb"), options_(options_for(place)) {}

  Result<void> make(uint64_t records) {
    if (rocksdb::Env::Default()->FileExists(path_).ok()) {
      Result<void> gone = result_of(rocksdb::DestroyDB(path_, options_));
      if (!gone) return gone;
    }
    options_.create_if_missing = true;
    if (Result<void> opened = open_rocksdb(); !opened) return opened;
    rocksdb::WriteOptions unlogged;  // the flush at the end keeps them
    unlogged.disableWAL = true;
    for (uint64_t number = 0; number < records; ++number) {
      Result<void> put = result_of(db_->Put(unlogged, ycsb_key(number), ycsb_value(number, 0)));
      if (!put) return put;
    }
    if (Result<void> done = result_of(db_->Flush(rocksdb::FlushOptions())); !done) return done;
    rocksdb::CompactRangeOptions whole;
    whole.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    Result<void> compacted = result_of(db_->CompactRange(whole, nullptr, nullptr));
    if (!compacted) return compacted;
    return begin({.records = records, .opened = 1});
  }

  Result<void> open() {
    options_.create_if_missing = false;
    if (!rocksdb::Env::Default()->FileExists(path_ + "/CURRENT").ok()) {
      return fail(Errc::kNotFound, "there is no database of this benchmark in the folder");
    }
    if (Result<void> opened = open_rocksdb(); !opened) return opened;
    std::string text;
    const rocksdb::Status got = db_->Get(rocksdb::ReadOptions(), kAbout, &text);
    if (got.IsNotFound()) return fail(Errc::kNotFound, "the database was never filled");
    if (Result<void> read = result_of(got); !read) return read;
    Result<About> about = parse_about(text);
    if (!about) return fail(about.error());
    ++about->opened;
    return begin(*about);
  }

  uint64_t records() const { return about_.records; }

  Result<YcsbFigures> run(const YcsbLoad& load) {
    CHECK(load.threads >= 1 && load.threads <= about_.records);
    const YcsbKeys keys(load.distribution, about_.records);
    std::vector<Worker> workers(load.threads);
    std::latch together(load.threads);
    std::atomic<bool> failed = false;
    {
      std::vector<std::jthread> threads;
      for (uint32_t i = 0; i < load.threads; ++i) {
        threads.emplace_back([this, i, &load, &keys, &together, &failed, &worker = workers[i]] {
          together.arrive_and_wait();
          worker.start = now();
          worker.result = work(i, load, keys, failed, worker);
          worker.end = now();
          if (!worker.result) failed = true;
        });
      }
    }
    return sum_of(workers);
  }

 private:
  struct Worker {
    Result<void> result;
    Time start;
    Time end;
    Histogram read_ns;
    Histogram update_ns;
  };

  Result<void> open_rocksdb() {
    rocksdb::DB* db = nullptr;
    const Result<void> opened = result_of(rocksdb::DB::Open(options_, path_, &db));
    db_.reset(db);
    return opened;
  }

  // Versions of this opening are above those of all before: the upper half counts openings.
  Result<void> begin(const About& about) {
    about_ = about;
    newest_ = std::vector<std::atomic<uint64_t>>(about.records);
    rocksdb::WriteOptions synced;
    synced.sync = true;
    return result_of(db_->Put(synced, kAbout, text_of(about)));
  }

  static Result<YcsbFigures> sum_of(const std::vector<Worker>& workers) {
    YcsbFigures all;
    Time start = workers.front().start;
    Time end = workers.front().end;
    for (const Worker& worker : workers) {
      if (!worker.result) return fail(worker.result.error());
      start = std::min(start, worker.start);
      end = std::max(end, worker.end);
      all.read_ns.merge(worker.read_ns);
      all.update_ns.merge(worker.update_ns);
    }
    all.seconds = (end - start).seconds();
    return all;
  }

  // One thread's part.
  Result<void> work(uint32_t thread, const YcsbLoad& load, const YcsbKeys& keys,
                    const std::atomic<bool>& failed, Worker& into) {
    Rng rng(mix64(load.seed) + thread);
    const uint64_t rest = load.operations % load.threads;
    const uint64_t count = load.operations / load.threads + (thread < rest ? 1 : 0);
    const Time end = into.start + Duration::from_seconds(load.seconds);
    const auto goes_on = [&](uint64_t done) {
      return !failed && (load.seconds > 0 ? done == 0 || now() < end : done < count);
    };
    for (uint64_t done = 0; goes_on(done); ++done) {
      const bool updates = rng.bernoulli(load.updates);
      const uint64_t number = keys.draw(rng);
      const Time start = now();
      Result<void> result = updates ? update(own(number, thread, load.threads)) : read(number);
      if (!result) return result;
      const auto took = static_cast<uint64_t>((now() - start).ns);
      (updates ? into.update_ns : into.read_ns).record(took);
    }
    return {};
  }

  // The record of this thread that is nearest.
  uint64_t own(uint64_t number, uint32_t thread, uint32_t threads) const {
    const uint64_t near = number - number % threads + thread;
    return near < about_.records ? near : near - threads;
  }

  Result<void> read(uint64_t number) {
    const uint64_t min = newest_[number].load(std::memory_order_acquire);
    std::string value;
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), ycsb_key(number), &value);
    if (status.IsNotFound()) return fail(Errc::kCorrupt, "a record that was put is not there");
    if (Result<void> got = result_of(status); !got) return got;
    const Result<uint64_t> version = ycsb_version(number, value);
    if (!version) return fail(version.error());
    if (*version < min) return fail(Errc::kCorrupt, "a record is older than what was put");
    return {};
  }

  // Only the thread that owns the record.
  Result<void> update(uint64_t number) {
    if (Result<void> got = read(number); !got) return got;
    const uint64_t last = newest_[number].load(std::memory_order_relaxed);
    const uint64_t next = std::max(last, about_.opened << 32) + 1;
    rocksdb::WriteOptions options;
    options.sync = place_.syncs_updates;
    Result<void> put = result_of(db_->Put(options, ycsb_key(number), ycsb_value(number, next)));
    if (put) newest_[number].store(next, std::memory_order_release);
    return put;
  }

  const YcsbPlace place_;
  const std::string path_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  About about_;
  std::vector<std::atomic<uint64_t>> newest_;  // version of each record that this opening has put
};

YcsbDatabase::YcsbDatabase(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
YcsbDatabase::~YcsbDatabase() = default;

Result<std::unique_ptr<YcsbDatabase>> YcsbDatabase::make(const YcsbPlace& place, uint64_t records) {
  CHECK(records >= 3 && records <= kYcsbRecordsMax);
  auto impl = std::make_unique<Impl>(place);
  if (const Result<void> made = impl->make(records); !made) return fail(made.error());
  return std::unique_ptr<YcsbDatabase>(new YcsbDatabase(std::move(impl)));
}

Result<std::unique_ptr<YcsbDatabase>> YcsbDatabase::open(const YcsbPlace& place) {
  auto impl = std::make_unique<Impl>(place);
  if (const Result<void> opened = impl->open(); !opened) return fail(opened.error());
  return std::unique_ptr<YcsbDatabase>(new YcsbDatabase(std::move(impl)));
}

uint64_t YcsbDatabase::records() const { return impl_->records(); }
Result<YcsbFigures> YcsbDatabase::run(const YcsbLoad& load) { return impl_->run(load); }

}  // namespace cairn::bench
