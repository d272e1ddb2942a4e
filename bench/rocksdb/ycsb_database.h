// SPDX-License-Identifier: Apache-2.0
// YcsbDatabase: records in RocksDB in a folder of any file system, and a YCSB-like load on them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "loadgen/ycsb_keys.h"

namespace cairn::bench {

using loadgen::YcsbDistribution;
using loadgen::YcsbKeys;

inline constexpr uint64_t kYcsbRecordsMax = 100'000'000;

struct YcsbPlace {
  std::string folder;          // exists; the database is `ycsb` in it
  uint64_t cache_bytes = 0;    // for blocks of tables; 0: none
  bool direct = true;          // reads, flushes and compactions go past the page cache
  bool syncs_updates = false;  // else the log is written back when the kernel likes
};

struct YcsbLoad {
  double updates = 0;  // the share of operations that are; the others are reads
  YcsbDistribution distribution = YcsbDistribution::kUniform;
  uint32_t threads = 1;
  uint64_t operations = 0;  // of all threads together
  double seconds = 0;       // above 0: so long instead
  uint64_t seed = 1;
};

struct YcsbFigures {
  double seconds = 0;
  Histogram read_ns;
  Histogram update_ns;

  double per_second() const;
};

// Errors of all: kIo (RocksDB's own words go to stderr); kCorrupt: a record was not found, never
// was put, or was older than what had been put before the read began.
class YcsbDatabase {
 public:
  // A new database with `records` records, 3 to the maximum, all in tables of the same shape; an
  // older one is removed.
  static Result<std::unique_ptr<YcsbDatabase>> make(const YcsbPlace& place, uint64_t records);
  // The one that is there. kNotFound: none that make() has finished.
  static Result<std::unique_ptr<YcsbDatabase>> open(const YcsbPlace& place);
  ~YcsbDatabase();
  YcsbDatabase(const YcsbDatabase&) = delete;
  YcsbDatabase& operator=(const YcsbDatabase&) = delete;

  uint64_t records() const;
  // As YCSB does with RocksDB: an update reads the record and puts it again, changed and whole. Not
  // more threads than records: each updates records of its own, so all know which is the newest.
  Result<YcsbFigures> run(const YcsbLoad& load);

 private:
  class Impl;
  explicit YcsbDatabase(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::bench
