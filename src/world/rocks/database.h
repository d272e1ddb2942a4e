// SPDX-License-Identifier: Apache-2.0
// Database: one RocksDB with the rows of a metadata state. All calls block: on the worker's thread.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "meta/state.h"
#include "world/rocks/rows_format.h"

namespace rocksdb {
class DB;
class Iterator;
class WriteBatch;
}  // namespace rocksdb

namespace cairn::rocks {

class Database {
 public:
  Database();
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Opens or makes the folder and fills the empty `state`. Errors as open_rocks_store().
  Result<void> open(const std::string& folder, meta::State& state, Time now);
  // Written and synced, all or nothing.
  Result<void> write(std::span<const meta::Mutation> mutations);
  void close();

 private:
  Result<void> restore(rocksdb::Iterator& rows, meta::State& state, Time now);
  Result<void> restore_row(rocksdb::Iterator& row, meta::State& state);
  void add(rocksdb::WriteBatch& batch, const meta::Mutation& mutation);

  std::unique_ptr<rocksdb::DB> db_;
  Totals totals_{.revision = meta::Revision(1)};
};

}  // namespace cairn::rocks
