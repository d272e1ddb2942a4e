// SPDX-License-Identifier: Apache-2.0
// Database: RocksDB on FlatFiles, and the three loads of the benchmark.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "bench/rocksdb/flat_files.h"

namespace cairn::bench {

struct DatabaseLoad {
  uint64_t keys = 0;
  uint64_t reads = 0;
  uint32_t threads = 1;
  uint32_t value_size = 400;
};

// A value follows from its key, so whoever reads it knows whether it is right. Threads start on
// the CPUs of the thread that calls. Errors: kCorrupt, kIo (RocksDB's own words go to stderr).
class Database {
 public:
  // `files` outlives it; `load` says what its keys and values are.
  static Result<std::unique_ptr<Database>> open(FlatFiles& files, const DatabaseLoad& load);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // `keys` puts of random keys, then everything in tables on the drive.
  Result<void> fill_random();
  // `reads` gets of random keys by `threads` threads.
  Result<void> read_random();
  // The same, sixteen keys with each call.
  Result<void> multi_read_random();
  // As read_random while one more thread puts.
  Result<void> read_while_writing();
  // Tables of the same shape whoever filled them.
  Result<void> compact();

 private:
  class Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::bench
