// SPDX-License-Identifier: Apache-2.0
// The store and RocksDB under the workloads of YCSB: files of one folder, one CPU, durable writes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bench/contest.h"
#include "bench/cpu_clock.h"
#include "bench/kv/parts.h"
#include "bench/kv/store_job.h"
#include "bench/process.h"
#include "bench/rocksdb/key_database.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"
#include "loadgen/key_load.h"

namespace cairn::bench {

using loadgen::KeyLoad;
using loadgen::KeyLoadResult;
using task::Task;

namespace {

constexpr std::array<size_t, 2> kValueBytes = {256, 1024};
constexpr uint64_t kCacheBytes = 8_MiB;  // of RocksDB, for blocks of tables
constexpr double kMicrosPerNano = 1e-3;

struct Figures {
  double per_second = 0;
  double per_cpu_second = 0;
  Histogram read_latency_ns;
  Histogram write_latency_ns;
};

Result<Figures> figures_of(const KeyLoadResult& result, double cpu) {
  if (result.error) return fail(*result.error);
  return Figures{.per_second = result.per_second(),
                 .per_cpu_second = static_cast<double>(result.operations) / std::max(cpu, 1e-6),
                 .read_latency_ns = result.read_latency_ns,
                 .write_latency_ns = result.write_latency_ns};
}

double per_second(const Figures& figures) { return figures.per_second; }
double per_cpu_second(const Figures& figures) { return figures.per_cpu_second; }
double get_p99(const Figures& figures) {
  return static_cast<double>(figures.read_latency_ns.p99());
}

void add_percentiles(Measurement& line, const std::string& what, const Histogram& latency_ns) {
  if (latency_ns.count() == 0) return;
  line.extras.emplace_back(what + "_p50_us",
                           static_cast<double>(latency_ns.p50()) * kMicrosPerNano);
  line.extras.emplace_back(what + "_p99_us",
                           static_cast<double>(latency_ns.p99()) * kMicrosPerNano);
}

class YcsbContest {
 public:
  YcsbContest(const KvBenchOptions& options, const TemporaryFolder& folder)
      : options_(options), folder_(folder) {}

  Result<void> run(Report& report) {
    for (const size_t bytes : kValueBytes) {
      if (const Result<void> filled = fill(bytes); !filled) return filled;
      for (const loadgen::KeyMix& mix : loadgen::key_mixes()) {
        add(load_name(mix.name, bytes), load_of(mix, bytes));
      }
      KeyLoad paced = load_of(*loadgen::find_key_mix("b"), bytes);
      paced.rate = options_.rate;
      add(load_name("b_paced", bytes), paced);
    }
    if (const Result<void> ran = contest_.run(options_.rounds, options_.progress); !ran) return ran;
    for (const auto& each : contest_.contestants()) {
      Measurement line = each.line("op/s", &per_second);
      line.extras.emplace_back("op_per_cpu_second", each.line("", &per_cpu_second).value());
      add_percentiles(line, "read", each.merged(&Figures::read_latency_ns));
      add_percentiles(line, "write", each.merged(&Figures::write_latency_ns));
      report.add(std::move(line));
    }
    put_ratios(report);
    return {};
  }

 private:
  static std::string load_name(std::string_view mix, size_t bytes) {
    return fmt::format("ycsb_{}_{}", mix, bytes);
  }
  std::string file(size_t bytes) const { return folder_.file(fmt::format("store{}", bytes)); }
  KeyLoad load_of(const loadgen::KeyMix& mix, size_t bytes) const {
    return {.mix = mix,
            .records = options_.records,
            .value_bytes = bytes,
            .depth = options_.depth,
            .duration = Duration::from_seconds(options_.seconds),
            .clock = &now};
  }
  StorePlace place_of(size_t bytes) const {
    const Objects objects{.count = options_.records, .bytes = kObjectKeyBytes + bytes};
    return {.stack = file_drive(options_, file(bytes), bytes_for(objects, options_.full))};
  }
  KeyDatabasePlace database_of(size_t bytes) const {
    return {.folder = folders_.at(bytes == kValueBytes[0] ? 0 : 1)->file(""),
            .cache_bytes = kCacheBytes,
            .direct = !options_.buffered,
            .syncs_writes = true};
  }

  Result<void> fill(size_t bytes) {
    const KeyLoad load = load_of({}, bytes);
    options_.tell(fmt::format("putting {} records of {} bytes", load.records, bytes));
    StorePlace place = place_of(bytes);
    place.object_bytes = kObjectKeyBytes + bytes;
    place.options.durability = kv::store::Durability::kNone;
    const Result<void> filled = with_store(
        options_, place, [&load](env::Env& env, kv::store::Store& store) -> Task<Result<void>> {
          return fill_store(env, store, load);
        });
    if (!filled) return filled;
    Result<TemporaryFolder> folder = TemporaryFolder::make(folder_.file(""));
    if (!folder) return fail(folder.error());
    folders_.at(bytes == kValueBytes[0] ? 0 : 1).emplace(std::move(*folder));
    return on_cpu(options_.server_cpu, [this, bytes, &load]() -> Result<void> {
      Result<std::unique_ptr<KeyDatabase>> database = KeyDatabase::open(database_of(bytes));
      if (!database) return fail(database.error());
      return (*database)->fill(load);
    });
  }
  static Task<Result<void>> fill_store(env::Env& env, kv::store::Store& store, KeyLoad load) {
    loadgen::KeyspaceTarget target(store);
    Result<void> filled = co_await loadgen::fill_keys(env, target, load);
    co_return filled;
  }

  void add(const std::string& name, const KeyLoad& load) {
    contest_.add(name, "cairn", [this, load] { return run_store(load); });
    contest_.add(name, "rocksdb", [this, load] { return run_rocksdb(load); });
  }

  Result<Figures> run_store(const KeyLoad& load) {
    Result<Figures> figures = fail(Errc::kClosed, "not run");
    const Result<void> ran =
        with_store(options_, place_of(load.value_bytes),
                   [&](env::Env& env, kv::store::Store& store) -> Task<Result<void>> {
                     return measure(env, store, load, figures);
                   });
    if (!ran) return fail(ran.error());
    return figures;
  }
  static Task<Result<void>> measure(env::Env& env, kv::store::Store& store, KeyLoad load,
                                    Result<Figures>& figures) {
    loadgen::KeyspaceTarget target(store);
    const double before = cpu_seconds();
    const Result<KeyLoadResult> result = co_await loadgen::run_key_load(env, target, load);
    const double cpu = cpu_seconds() - before;
    if (!result) co_return fail(result.error());
    figures = figures_of(*result, cpu);
    co_return Result<void>();
  }

  Result<Figures> run_rocksdb(const KeyLoad& load) {
    Result<Figures> figures = fail(Errc::kClosed, "not run");
    const Result<void> ran = on_cpu(options_.server_cpu, [&]() -> Result<void> {
      Result<std::unique_ptr<KeyDatabase>> database =
          KeyDatabase::open(database_of(load.value_bytes));
      if (!database) return fail(database.error());
      const double before = cpu_seconds();
      const Result<KeyLoadResult> result = (*database)->run(load);
      const double cpu = cpu_seconds() - before;
      if (!result) return fail(result.error());
      figures = figures_of(*result, cpu);
      return {};
    });
    if (!ran) return fail(ran.error());
    return figures;
  }

  // Of both sizes, and the worse of them under the name without one.
  void put_ratios(Report& report) const {
    for (const loadgen::KeyMix& mix : loadgen::key_mixes()) {
      double worst = INFINITY;
      for (const size_t bytes : kValueBytes) {
        const std::string name = load_name(mix.name, bytes);
        const double ratio =
            contest_.ratio({name, "cairn"}, {name, "rocksdb"}, &per_cpu_second).value_or(0);
        report.add_ratio(fmt::format("ycsb_{}_ops_per_cpu_vs_rocksdb_{}", mix.name, bytes), ratio);
        worst = std::min(worst, ratio);
      }
      report.add_ratio(fmt::format("ycsb_{}_ops_per_cpu_vs_rocksdb", mix.name), worst);
    }
    double slowest = 0;
    for (const size_t bytes : kValueBytes) {
      const std::string name = load_name("b_paced", bytes);
      const double ratio = contest_.ratio({name, "cairn"}, {name, "rocksdb"}, &get_p99).value_or(0);
      report.add_ratio(fmt::format("get_p99_vs_rocksdb_{}", bytes), ratio);
      slowest = std::max(slowest, ratio);
    }
    report.add_ratio("get_p99_vs_rocksdb", slowest);
  }

  const KvBenchOptions& options_;
  const TemporaryFolder& folder_;
  std::array<std::optional<TemporaryFolder>, kValueBytes.size()> folders_;
  ContestOf<Figures> contest_;
};

}  // namespace

Result<void> bench_kv_ycsb(const KvBenchOptions& options, Report& report) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  YcsbContest contest(options, *folder);
  return contest.run(report);
}

}  // namespace cairn::bench
