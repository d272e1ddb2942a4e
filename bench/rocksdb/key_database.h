// SPDX-License-Identifier: Apache-2.0
// KeyDatabase: RocksDB under the loads of loadgen/key_load.h, by threads that block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "loadgen/key_load.h"

namespace cairn::bench {

struct KeyDatabasePlace {
  std::string folder;  // exists; the database is `keys` in it
  uint64_t cache_bytes = 0;
  bool direct = true;        // tables are read and written past the page cache
  bool syncs_writes = true;  // a put returns when it survives a crash
};

// Threads start on the CPUs of the thread that calls. Errors: kIo (RocksDB's own words go to
// stderr).
class KeyDatabase {
 public:
  // Makes it if it is not there.
  static Result<std::unique_ptr<KeyDatabase>> open(const KeyDatabasePlace& place);
  ~KeyDatabase();
  KeyDatabase(const KeyDatabase&) = delete;
  KeyDatabase& operator=(const KeyDatabase&) = delete;

  // Puts all records of a load and writes them to tables.
  Result<void> fill(const loadgen::KeyLoad& load);
  // `depth` threads. Loops, records, checks and errors as run_key_load().
  Result<loadgen::KeyLoadResult> run(const loadgen::KeyLoad& load);

 private:
  class Impl;
  explicit KeyDatabase(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::bench
