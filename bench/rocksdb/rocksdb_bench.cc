// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/rocksdb_bench.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/box_process.h"
#include "bench/process.h"
#include "bench/rocksdb/database.h"
#include "bench/rocksdb/host_thread.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

using Mode = fabric::DoorbellOptions::Mode;
constexpr Mode kModes[] = {Mode::kOff, Mode::kFixed, Mode::kAdaptive};

struct Phase {
  std::string_view name;
  Result<void> (Database::*run)();
  bool writes;  // `keys` operations, else `reads`
};
constexpr Phase kPhases[] = {{"fillrandom", &Database::fill_random, true},
                             {"readrandom", &Database::read_random, false},
                             {"multireadrandom", &Database::multi_read_random, false},
                             {"readwhilewriting", &Database::read_while_writing, false}};

// What one mode did in one phase, round after round.
struct Figures {
  Measurement time;         // seconds
  Measurement cpu;          // us per operation: RocksDB, host and box
  Measurement storage_cpu;  // us per operation: our host's thread and the box
};

struct Contender {
  Mode mode;
  std::unique_ptr<BoxProcess> box;
  std::vector<Figures> phases;
};

class RocksdbBench {
 public:
  explicit RocksdbBench(const RocksdbOptions& options) : options_(options) {}

  Result<Report> run() {
    // All processes first: none may be started once RocksDB has threads.
    for (const Mode mode : kModes) {
      Result<std::unique_ptr<BoxProcess>> box = BoxProcess::start({.world = options_.world,
                                                                   .cpu = options_.box_cpu,
                                                                   .doorbell = {.mode = mode},
                                                                   .memory = options_.memory});
      if (!box) return fail(box.error());
      (*box)->pause();
      contenders_.push_back({mode, std::move(*box), std::vector<Figures>(std::size(kPhases))});
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (Contender& each : contenders_) {
        const Result<void> ran = on_cpu(options_.host_cpu, [&] { return run_one(round, each); });
        if (!ran) return fail(ran.error());
      }
    }
    return make_report();
  }

 private:
  // A new database from its making to its end.
  Result<void> run_one(int round, Contender& contender) {
    contender.box->resume();
    fabric::Uri uri = contender.box->uri();
    uri.options.doorbell.mode = contender.mode;
    Result<std::unique_ptr<HostThread>> host = HostThread::start(
        {.world = options_.world, .cpu = options_.host_cpu, .uri = std::move(uri)});
    if (!host) return fail(host.error());
    FlatFiles files(**host);
    const DatabaseLoad load{.keys = static_cast<uint64_t>(options_.keys),
                            .reads = static_cast<uint64_t>(options_.reads),
                            .threads = static_cast<uint32_t>(options_.threads),
                            .value_size = static_cast<uint32_t>(options_.value_size)};
    for (size_t i = 0; i < std::size(kPhases); ++i) {
      if (options_.progress) {
        options_.progress(fmt::format("round {} of {}: {} {}", round + 1, options_.rounds,
                                      kPhases[i].name, name(contender.mode)));
      }
      // Opened anew for each: what the last one left is found again on the drive.
      Result<std::unique_ptr<Database>> database = Database::open(files, load);
      if (!database) return fail(database.error());
      const Result<void> measured = measure(kPhases[i], **database, **host, contender, i);
      if (!measured) return measured;
      if (!kPhases[i].writes) continue;
      if (Result<void> compacted = (*database)->compact(); !compacted) return compacted;
    }
    contender.box->pause();
    return {};
  }

  Result<void> measure(const Phase& phase, Database& database, const HostThread& host,
                       Contender& contender, size_t index) {
    struct Reading {
      Time at;
      Duration process;
      Duration host;
      Duration box;
    };
    const auto read = [&]() -> Reading {
      return {now(), cpu_time(), host.cpu_time(), contender.box->usage().cpu};
    };
    const Reading before = read();
    if (Result<void> ran = (database.*phase.run)(); !ran) return ran;
    const Reading after = read();
    const double count = phase.writes ? options_.keys : options_.reads;
    const Duration box = after.box - before.box;
    Figures& figures = contender.phases[index];
    figures.time.samples.push_back((after.at - before.at).seconds());
    figures.cpu.samples.push_back((after.process - before.process + box).us() / count);
    figures.storage_cpu.samples.push_back((after.host - before.host + box).us() / count);
    return {};
  }

  Report make_report() const {
    Report report("rocksdb");
    const Contender& off = contenders_.front();
    for (size_t i = 0; i < std::size(kPhases); ++i) {
      const double count = kPhases[i].writes ? options_.keys : options_.reads;
      for (const Contender& each : contenders_) {
        const Figures& figures = each.phases[i];
        Measurement line{std::string(kPhases[i].name), std::string(name(each.mode)), "op/s", {}};
        for (const double seconds : figures.time.samples) line.samples.push_back(count / seconds);
        line.extras = {{"seconds", figures.time.value()},
                       {"cpu_us", figures.cpu.value()},
                       {"storage_cpu_us", figures.storage_cpu.value()}};
        report.add(std::move(line));
        if (each.mode == Mode::kOff) continue;
        const std::string mode = each.mode == Mode::kAdaptive ? "" : "_fixed";
        const auto add = [&](const char* what, Measurement Figures::* part) {
          report.add_ratio(fmt::format("{}_{}{}_vs_off", kPhases[i].name, what, mode),
                           paired_ratio(figures.*part, off.phases[i].*part));
        };
        add("time", &Figures::time);
        add("cpu", &Figures::cpu);
        add("storage_cpu", &Figures::storage_cpu);
      }
    }
    return report;
  }

  const RocksdbOptions& options_;
  std::vector<Contender> contenders_;
};

}  // namespace

Result<Report> bench_rocksdb(const RocksdbOptions& options) {
  RocksdbBench bench(options);
  return bench.run();
}

}  // namespace cairn::bench
