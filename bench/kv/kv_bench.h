// SPDX-License-Identifier: Apache-2.0
// `cairn bench kv`: what the key-value store costs and holds, next to RocksDB and Redis.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/report.h"
#include "bench/world_load.h"
#include "model/flash/parameters.h"

namespace cairn::bench {

struct KvBenchOptions {
  WorldFactory world;  // in which the store runs
  int rounds = 5;
  double seconds = 2;                 // of one run of a workload
  uint64_t records = 400'000;         // of a workload
  uint64_t objects = 20'000'000;      // of the largest store whose memory is measured
  uint64_t capacity_bytes = 1 << 30;  // of the drive that is filled
  double full = 0.5;                  // how full workloads find the store's drive
  double rate = 5'000;                // operations per second where latencies are compared
  uint32_t depth = 64;                // operations at once: tasks of ours, threads of RocksDB's
  int server_cpu = 0;
  int client_cpu = 1;
  std::vector<std::string> only;  // of kv_bench_parts(); empty: all
  std::string program;            // cairn itself, which serves keys in a process of its own
  bool buffered = false;          // files are read and written through the page cache
  std::string folder;             // for files that are gone afterwards
  std::shared_ptr<const flash::Parameters> flash;  // of the modelled SSD
  std::function<void(std::string_view)> progress;  // may be empty

  bool wants(std::string_view part) const;
  void tell(std::string_view what) const {
    if (progress) progress(what);
  }
};

// "ycsb", "redis", "capacity", "compaction" and "memory".
const std::vector<std::string>& kv_bench_parts();

//   ycsb_X_ops_per_cpu_vs_rocksdb_256, _1024
//                          operations of workload a, b, c, d, f or wr per second of processor time
//                          over RocksDB's, with keys of 16 and values of 256 or 1024 bytes, on
//                          files of one folder, everything on one CPU, writes durable in both;
//                          ycsb_X_ops_per_cpu_vs_rocksdb: the lower one
//   get_p99_vs_rocksdb_256, _1024, get_p99_vs_rocksdb
//                          of the reads of workload b at a given rate, from when each was due;
//                          the last is the higher one
//   set_durable_vs_redis   redis-benchmark's SETs per second of `cairn kv serve` on a file over
//                          those of redis-server with appendfsync always, in one folder
//   redis_benchmark_get_vs_redis, redis_benchmark_set_vs_redis
//                          the same of a memory drive over redis-server without a file, one request
//                          at a time on each connection; with _p16, sixteen
//   usable_capacity_256, _1024, usable_capacity
//                          of a file: bytes of keys and values that it has taken when a PUT is
//                          first refused; the last is the lower one
//   compaction_speedup_8   overwrites per second of a store that is nine tenths full on a modelled
//                          SSD with eight values moved at once, over those with one
//   dram_bytes_per_object  by how much this process grows from before a store is opened until so
//                          many objects are in it, for each of them; with _1pct and _10pct, of a
//                          hundredth and a tenth as many
// What this machine lacks (redis-server, redis-benchmark) is skipped, with what to install.
Result<Report> bench_kv(const KvBenchOptions& options);

}  // namespace cairn::bench
