// SPDX-License-Identifier: Apache-2.0
#include "bench/kv/kv_bench.h"

#include <algorithm>
#include <array>

#include "bench/kv/parts.h"

namespace cairn::bench {

namespace {

struct Part {
  const char* name;
  Result<void> (*run)(const KvBenchOptions& options, Report& report);
};
// RocksDB leaves threads behind, so whoever forks comes before it.
constexpr std::array<Part, 5> kParts = {{
    {"memory", bench_kv_memory},
    {"redis", bench_kv_redis},
    {"capacity", bench_kv_capacity},
    {"compaction", bench_kv_compaction},
    {"ycsb", bench_kv_ycsb},
}};

}  // namespace

const std::vector<std::string>& kv_bench_parts() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    all.reserve(kParts.size());
    for (const Part& part : kParts) all.emplace_back(part.name);
    return all;
  }();
  return names;
}

bool KvBenchOptions::wants(std::string_view part) const {
  return only.empty() || std::ranges::find(only, part) != only.end();
}

Result<Report> bench_kv(const KvBenchOptions& options) {
  Report report("kv");
  for (const Part& part : kParts) {
    if (!options.wants(part.name)) continue;
    if (const Result<void> done = part.run(options, report); !done) return fail(done.error());
  }
  return report;
}

}  // namespace cairn::bench
