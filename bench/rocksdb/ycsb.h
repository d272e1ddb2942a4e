// SPDX-License-Identifier: Apache-2.0
// `cairn bench ycsb`: RocksDB with a YCSB-like load in a folder, whatever file system and drive
// that is on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "bench/report.h"
#include "bench/rocksdb/ycsb_database.h"

namespace cairn::bench {

struct YcsbOptions {
  YcsbPlace place{.folder = {}, .cache_bytes = 8_MiB};
  uint64_t records = 100'000;
  bool keep = false;                   // run on the database that is there, however many it has
  std::vector<std::string> workloads;  // of ycsb_workloads(); empty: all
  YcsbDistribution distribution = YcsbDistribution::kUniform;
  std::vector<int> threads = {1, 4, 16};
  uint64_t operations = 20'000;  // of one run
  double seconds = 0;            // above 0: so long instead
  int rounds = 1;
  std::function<void(std::string_view)> progress;
};

// "a": as many updates as reads; "b": one in twenty; "c": reads only.
const std::vector<std::string>& ycsb_workloads();

// Lines are workload_a and so on, with "4 threads" as variant: operations per second, and P50, P99
// and P99.9 of reads and of updates. `load` is how fast records were put, unless the database was
// kept. Errors as those of YcsbDatabase.
Result<Report> bench_ycsb(const YcsbOptions& options);

}  // namespace cairn::bench
