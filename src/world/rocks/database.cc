// SPDX-License-Identifier: Apache-2.0
#include "world/rocks/database.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace cairn::rocks {

namespace {

std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }
rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

rocksdb::Options options_of_database() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // A log that was cut short ends with what nobody was told of; damage before its end is an error.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.write_buffer_size = 8_MiB;
  options.max_background_jobs = 2;
  options.keep_log_file_num = 2;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  return options;
}

std::unexpected<Error> failed(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  if (status.IsNoSpace()) return fail(Errc::kNoSpace, "the disk of the metadata folder is full");
  if (status.IsCorruption() || status.IsInvalidArgument() || status.IsNotSupported()) {
    return fail(Errc::kCorrupt, "the RocksDB of the metadata folder is damaged");
  }
  if (text.find("lock") != std::string::npos || text.find("LOCK:") != std::string::npos) {
    return fail(Errc::kExists,
                "another process uses the metadata folder: stop it, or take another");
  }
  if (text.find("ermission denied") != std::string::npos) {
    return fail(Errc::kDenied, "the metadata folder may not be written: change its owner or mode");
  }
  if (status.IsPathNotFound() || text.find("o such file") != std::string::npos) {
    return fail(Errc::kNotFound, "the folder above the metadata folder is not there: make it");
  }
  return fail(Errc::kIo, "RocksDB of the metadata folder failed: see its LOG file");
}

// A folder with files in it that is no RocksDB is somebody's.
Result<void> check_folder(const std::string& folder) {
  rocksdb::Env* files = rocksdb::Env::Default();
  std::vector<std::string> names;
  const rocksdb::Status listed = files->GetChildren(folder, &names);
  if (listed.IsNotFound() || listed.IsPathNotFound()) return {};
  if (!listed.ok()) return failed(listed);
  const bool is_database = std::ranges::find(names, "CURRENT") != names.end();
  // What a start that was broken off may have left behind.
  const bool is_foreign = std::ranges::any_of(names, [](const std::string& name) {
    return name != "." && name != ".." && name != "LOCK" && name != "IDENTITY" &&
           !name.starts_with("LOG") && !name.starts_with("MANIFEST-") &&
           !name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp") && !name.ends_with(".log");
  });
  if (!is_database && is_foreign) {
    return fail(Errc::kUnsupported, "the metadata folder has other files in it: take an empty one");
  }
  return {};
}

}  // namespace

Database::Database() = default;
Database::~Database() { close(); }

void Database::close() {
  if (db_ == nullptr) return;
  // What is written is synced; there is nothing that closing could lose.
  [[maybe_unused]] const rocksdb::Status closed = db_->Close();
  db_.reset();
}

Result<void> Database::open(const std::string& folder, meta::State& state, Time now) {
  if (const Result<void> fits = check_folder(folder); !fits) return fits;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(options_of_database(), folder, &db);
  if (!opened.ok()) return failed(opened);
  db_.reset(db);
  rocksdb::ReadOptions reading;
  reading.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(reading));
  rows->SeekToFirst();
  if (!rows->status().ok()) return failed(rows->status());
  if (rows->Valid()) return restore(*rows, state, now);
  rocksdb::WriteBatch batch;
  batch.Put(slice(kFormatKey), format_value());
  batch.Put(slice(kTotalsKey), totals_value(totals_));
  rocksdb::WriteOptions writing;
  writing.sync = true;
  const rocksdb::Status written = db_->Write(writing, &batch);
  if (!written.ok()) return failed(written);
  return {};
}

Result<void> Database::restore(rocksdb::Iterator& rows, meta::State& state, Time now) {
  if (view(rows.key()) != kFormatKey) {
    return fail(Errc::kUnsupported, "the folder holds a RocksDB of something else");
  }
  if (const Result<void> ours = check_format(view(rows.value())); !ours) return ours;
  totals_ = {};
  for (rows.Next(); rows.Valid(); rows.Next()) {
    if (const Result<void> row = restore_row(rows, state); !row) return row;
  }
  if (!rows.status().ok()) return failed(rows.status());
  return state.restored(totals_.revision, totals_.compacted, totals_.last_lease, now);
}

Result<void> Database::restore_row(rocksdb::Iterator& row, meta::State& state) {
  const std::string_view key = view(row.key());
  const std::string_view value = view(row.value());
  if (key == kTotalsKey) {
    const Result<Totals> totals = read_totals(value);
    if (!totals) return fail(totals.error());
    totals_ = *totals;
    return {};
  }
  if (key.starts_with(kLeaseMark)) {
    const Result<meta::Lease> lease = read_lease(key, value);
    if (!lease) return fail(lease.error());
    return state.restore(*lease);
  }
  if (key.starts_with(kRowMark)) {
    Result<meta::Row> found = read_row(key, value);
    if (!found) return fail(found.error());
    return state.restore(std::move(*found));
  }
  return fail(Errc::kCorrupt, "the metadata folder has a row that nobody wrote");
}

void Database::add(rocksdb::WriteBatch& batch, const meta::Mutation& mutation) {
  for (const meta::Row& row : mutation.rows) {
    batch.Put(row_key({row.entry.modified, row.index}), row_value(row));
    totals_.revision = row.entry.modified;
  }
  if (mutation.granted) {
    batch.Put(lease_key(mutation.granted->id), lease_value(*mutation.granted));
    totals_.last_lease = mutation.granted->id;
  }
  if (mutation.ended != meta::LeaseId()) batch.Delete(lease_key(mutation.ended));
  for (const meta::RowId row : mutation.dropped) batch.Delete(row_key(row));
  if (mutation.compacted != meta::Revision()) totals_.compacted = mutation.compacted;
}

Result<void> Database::write(std::span<const meta::Mutation> mutations) {
  rocksdb::WriteBatch batch;
  for (const meta::Mutation& mutation : mutations) add(batch, mutation);
  batch.Put(slice(kTotalsKey), totals_value(totals_));
  rocksdb::WriteOptions writing;
  writing.sync = true;
  const rocksdb::Status written = db_->Write(writing, &batch);
  if (!written.ok()) return failed(written);
  return {};
}

}  // namespace cairn::rocks
