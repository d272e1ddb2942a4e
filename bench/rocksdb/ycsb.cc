// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/ycsb.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/contest.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

struct Workload {
  std::string name;
  double updates;
};
// Reads first: they find the tables as they were made.
const Workload kWorkloads[] = {{"c", 0}, {"b", 0.05}, {"a", 0.5}};

void add_percentiles(Measurement& line, const std::string& what, const Histogram& latency_ns) {
  if (latency_ns.count() == 0) return;
  const auto us = [](uint64_t nanos) { return static_cast<double>(nanos) * 1e-3; };
  line.extras.emplace_back(what + "_p50_us", us(latency_ns.p50()));
  line.extras.emplace_back(what + "_p99_us", us(latency_ns.p99()));
  line.extras.emplace_back(what + "_p999_us", us(latency_ns.p999()));
}

class YcsbBench {
 public:
  explicit YcsbBench(const YcsbOptions& options) : options_(options), report_("ycsb") {}

  Result<Report> run() {
    Result<std::unique_ptr<YcsbDatabase>> database = options_.keep ? open() : load();
    if (!database) return fail(database.error());
    for (const Workload& workload : kWorkloads) {
      if (!wants(workload.name)) continue;
      for (const int threads : options_.threads) {
        const Result<void> measured = measure(**database, workload, threads);
        if (!measured) return fail(measured.error());
      }
    }
    return std::move(report_);
  }

 private:
  bool wants(const std::string& workload) const {
    return options_.workloads.empty() ||
           std::ranges::find(options_.workloads, workload) != options_.workloads.end();
  }

  void tell(std::string_view what) const {
    if (options_.progress) options_.progress(what);
  }

  Result<std::unique_ptr<YcsbDatabase>> open() const { return YcsbDatabase::open(options_.place); }

  Result<std::unique_ptr<YcsbDatabase>> load() {
    tell(fmt::format("loading {} records", options_.records));
    const Time start = now();
    auto database = YcsbDatabase::make(options_.place, options_.records);
    if (!database) return database;
    const double seconds = (now() - start).seconds();
    report_.add({.name = "load",
                 .variant = "",
                 .unit = "op/s",
                 .samples = {static_cast<double>(options_.records) / seconds},
                 .extras = {}});
    return database;
  }

  Result<void> measure(YcsbDatabase& database, const Workload& workload, int threads) {
    uint64_t seed = 0;
    ContestOf<YcsbFigures> contest;
    contest.add("workload_" + workload.name,
                fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"), [&] {
                  return database.run({.updates = workload.updates,
                                       .distribution = options_.distribution,
                                       .threads = static_cast<uint32_t>(threads),
                                       .operations = options_.operations,
                                       .seconds = options_.seconds,
                                       .seed = ++seed});
                });
    if (const Result<void> ran = contest.run(options_.rounds, options_.progress); !ran) return ran;
    const auto& rounds = contest.contestants().front();
    Measurement line = rounds.line("op/s", &YcsbFigures::per_second);
    const Histogram read_ns = rounds.merged(&YcsbFigures::read_ns);
    const Histogram update_ns = rounds.merged(&YcsbFigures::update_ns);
    line.extras.emplace_back("operations", read_ns.count() + update_ns.count());
    add_percentiles(line, "read", read_ns);
    add_percentiles(line, "update", update_ns);
    report_.add(std::move(line));
    return {};
  }

  const YcsbOptions& options_;
  Report report_;
};

}  // namespace

const std::vector<std::string>& ycsb_workloads() {
  static const std::vector<std::string> names = {"a", "b", "c"};
  return names;
}

Result<Report> bench_ycsb(const YcsbOptions& options) { return YcsbBench(options).run(); }

}  // namespace cairn::bench
