// SPDX-License-Identifier: Apache-2.0
// The parts of `cairn bench kv`, each in a file of its own. kv_bench.h says what their ratios are.
#pragma once

#include "base/error.h"
#include "bench/kv/kv_bench.h"
#include "bench/report.h"

namespace cairn::bench {

Result<void> bench_kv_memory(const KvBenchOptions& options, Report& report);
Result<void> bench_kv_redis(const KvBenchOptions& options, Report& report);
Result<void> bench_kv_capacity(const KvBenchOptions& options, Report& report);
Result<void> bench_kv_compaction(const KvBenchOptions& options, Report& report);
Result<void> bench_kv_ycsb(const KvBenchOptions& options, Report& report);

}  // namespace cairn::bench
