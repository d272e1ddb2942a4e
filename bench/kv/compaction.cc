// SPDX-License-Identifier: Apache-2.0
// What moving several values at once gains: overwrites of a store that is nine tenths full, so that
// compaction is what they wait for, on a modelled SSD whose requests take their time.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/rng.h"
#include "bench/contest.h"
#include "bench/kv/parts.h"
#include "bench/kv/store_job.h"
#include "bench/workload.h"
#include "loadgen/key_load.h"

namespace cairn::bench {

using task::Task;

namespace {

constexpr size_t kValueBytes = 1024;
constexpr uint64_t kDriveBytes = 64_MiB;
constexpr size_t kMovers = 8;

struct Figures {
  double per_second = 0;
  uint64_t moved = 0;
};
double per_second(const Figures& figures) { return figures.per_second; }

// Fills the store until it is full, erases one key in ten and overwrites the others.
class Overwrites {
 public:
  Overwrites(env::Env& env, kv::store::Store& store, const KvBenchOptions& options)
      : env_(env), target_(store), store_(store), options_(options) {}

  Task<Result<void>> run(Figures& figures) {
    loadgen::KeyLoad load{.mix = *loadgen::find_key_mix("wr"),
                          .distribution = loadgen::YcsbDistribution::kUniform,
                          .records = store_.stats().live_bytes_max / (kValueBytes + 32) * 9 / 10,
                          .value_bytes = kValueBytes,
                          .depth = options_.depth,
                          .duration = Duration::from_seconds(options_.seconds),
                          .clock = &now};
    const Result<void> filled = co_await loadgen::fill_keys(env_, target_, load);
    if (!filled) co_return filled;
    // Once around, so that what is dead lies everywhere.
    loadgen::KeyLoad first = load;
    first.duration = 3600_s;
    first.operations_max = load.records / 5;
    const Result<loadgen::KeyLoadResult> mixed =
        co_await loadgen::run_key_load(env_, target_, first);
    if (!mixed) co_return fail(mixed.error());
    if (mixed->error) co_return fail(*mixed->error);
    load.seed = 2;
    const uint64_t moved_before = store_.stats().values_moved;
    const Result<loadgen::KeyLoadResult> result =
        co_await loadgen::run_key_load(env_, target_, load);
    if (!result) co_return fail(result.error());
    if (result->error) co_return fail(*result->error);
    figures = {.per_second = result->per_second(),
               .moved = store_.stats().values_moved - moved_before};
    co_return Result<void>();
  }

 private:
  env::Env& env_;
  loadgen::KeyspaceTarget target_;
  kv::store::Store& store_;
  const KvBenchOptions& options_;
};

Task<Result<void>> overwrite(env::Env& env, kv::store::Store& store, const KvBenchOptions& options,
                             Figures& figures) {
  Overwrites overwrites(env, store, options);
  Result<void> done = co_await overwrites.run(figures);
  co_return done;
}

Result<Figures> measure(const KvBenchOptions& options, size_t movers) {
  const StorePlace place{
      .stack = fmt::format("flash:profile=laptop-tlc,size={},block=512", kDriveBytes),
      .object_bytes = kObjectKeyBytes + kValueBytes,
      .options = {.put_wait_max = 60_s, .movers_max = movers}};
  Figures figures;
  const Result<void> ran = with_store(options, place, [&](env::Env& env, kv::store::Store& store) {
    return overwrite(env, store, options, figures);
  });
  if (!ran) return fail(ran.error());
  return figures;
}

}  // namespace

Result<void> bench_kv_compaction(const KvBenchOptions& options, Report& report) {
  ContestOf<Figures> contest;
  contest.add("overwrite_90pct_full", "movers_1", [&] { return measure(options, 1); });
  contest.add("overwrite_90pct_full", "movers_8", [&] { return measure(options, kMovers); });
  if (const Result<void> ran = contest.run(options.rounds, options.progress); !ran) return ran;
  for (const auto& each : contest.contestants()) {
    Measurement line = each.line("op/s", &per_second);
    line.extras.emplace_back("values_moved", static_cast<double>(each.rounds.back().moved));
    report.add(std::move(line));
  }
  report.add_ratio("compaction_speedup_8",
                   contest
                       .ratio({"overwrite_90pct_full", "movers_8"},
                              {"overwrite_90pct_full", "movers_1"}, &per_second)
                       .value_or(0));
  return {};
}

}  // namespace cairn::bench
