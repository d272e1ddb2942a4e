// SPDX-License-Identifier: Apache-2.0
// `cairn bench rocksdb`: RocksDB with its files on a drive of a box, with batching and without
// (Figure 13 of the i10 paper).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "bench/report.h"
#include "bench/world_load.h"

namespace cairn::bench {

struct RocksdbOptions {
  WorldFactory world;  // of host and box
  int rounds = 3;
  int keys = 200'000;  // put by fillrandom, in random order, some twice
  int reads = 50'000;  // of each reading phase, all threads together
  int threads = 16;    // that read
  int value_size = 400;
  int box_cpu = 0;
  int host_cpu = 1;            // of RocksDB's threads and of our host's
  uint64_t memory = 1024_MiB;  // of each box
  std::function<void(std::string_view)> progress;
};

// In each round a new database with batching off, with i10's fixed doorbell and with ours: filled,
// closed, opened again, read, and read while somebody writes. Every value read is compared with
// what was put. Ratios are NAME_time_vs_off, NAME_cpu_vs_off (all of RocksDB, host and box) and
// NAME_storage_cpu_vs_off (our host's thread and the box): below 1 is better than off.
// kCorrupt: a value was not what was put; kIo: RocksDB failed, and printed why.
Result<Report> bench_rocksdb(const RocksdbOptions& options);

}  // namespace cairn::bench
