// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/rocksdb_bench.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/box_process.h"
#include "bench/contest.h"
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

// What one mode did in one phase.
struct Figures {
  double seconds = 0;
  double cpu_us = 0;          // per operation: RocksDB, host and box
  double storage_cpu_us = 0;  // per operation: our host's thread and the box
};
// In one round: a new database from its making to its end.
using Life = std::array<Figures, std::size(kPhases)>;

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
      boxes_.push_back(std::move(*box));
      contest_.add("database", std::string(name(mode)),
                   [this, mode, box = boxes_.back().get()] { return live(mode, *box); });
    }
    if (const Result<void> ran = contest_.run(options_.rounds, options_.progress); !ran) {
      return fail(ran.error());
    }
    return make_report();
  }

 private:
  // A new database from its making to its end.
  Result<Life> live(Mode mode, BoxProcess& box) const {
    Life life;
    const Result<void> ran = on_cpu(options_.host_cpu, [&] { return run_phases(mode, box, life); });
    if (!ran) return fail(ran.error());
    return life;
  }

  Result<void> run_phases(Mode mode, BoxProcess& box, Life& life) const {
    box.resume();
    fabric::Uri uri = box.uri();
    uri.options.doorbell.mode = mode;
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
        options_.progress(fmt::format("{} {}", kPhases[i].name, name(mode)));
      }
      // Opened anew for each: what the last one left is found again on the drive.
      Result<std::unique_ptr<Database>> database = Database::open(files, load);
      if (!database) return fail(database.error());
      Result<Figures> measured = measure(kPhases[i], **database, **host, box);
      if (!measured) return fail(measured.error());
      life[i] = *measured;
      if (!kPhases[i].writes) continue;
      if (Result<void> compacted = (*database)->compact(); !compacted) return compacted;
    }
    box.pause();
    return {};
  }

  Result<Figures> measure(const Phase& phase, Database& database, const HostThread& host,
                          const BoxProcess& box) const {
    struct Reading {
      Time at;
      Duration process;
      Duration host;
      Duration box;
    };
    const auto read = [&]() -> Reading {
      return {now(), cpu_time(), host.cpu_time(), box.usage().cpu};
    };
    const Reading before = read();
    if (const Result<void> ran = (database.*phase.run)(); !ran) return fail(ran.error());
    const Reading after = read();
    const double count = operations(phase);
    const Duration by_box = after.box - before.box;
    return Figures{.seconds = (after.at - before.at).seconds(),
                   .cpu_us = (after.process - before.process + by_box).us() / count,
                   .storage_cpu_us = (after.host - before.host + by_box).us() / count};
  }
  double operations(const Phase& phase) const {
    return phase.writes ? options_.keys : options_.reads;
  }

  Report make_report() const {
    Report report("rocksdb");
    const ContestOf<Life>::Contestant& off = contest_.contestants().front();
    for (size_t i = 0; i < std::size(kPhases); ++i) {
      for (const ContestOf<Life>::Contestant& each : contest_.contestants()) {
        // What it did in this phase, round after round.
        const auto of = [i](const ContestOf<Life>::Contestant& one, double Figures::* part) {
          return Measurement{.samples =
                                 one.values([i, part](const Life& life) { return life[i].*part; })};
        };
        Measurement line{std::string(kPhases[i].name), each.variant, "op/s", {}};
        for (const double seconds : of(each, &Figures::seconds).samples) {
          line.samples.push_back(operations(kPhases[i]) / seconds);
        }
        line.extras = {{"seconds", of(each, &Figures::seconds).value()},
                       {"cpu_us", of(each, &Figures::cpu_us).value()},
                       {"storage_cpu_us", of(each, &Figures::storage_cpu_us).value()}};
        report.add(std::move(line));
        if (each.variant == off.variant) continue;
        const std::string mode = each.variant == name(Mode::kAdaptive) ? "" : "_fixed";
        const auto add = [&](const char* what, double Figures::* part) {
          report.add_ratio(fmt::format("{}_{}{}_vs_off", kPhases[i].name, what, mode),
                           paired_ratio(of(each, part), of(off, part)));
        };
        add("time", &Figures::seconds);
        add("cpu", &Figures::cpu_us);
        add("storage_cpu", &Figures::storage_cpu_us);
      }
    }
    return report;
  }

  const RocksdbOptions& options_;
  std::vector<std::unique_ptr<BoxProcess>> boxes_;
  ContestOf<Life> contest_;
};

}  // namespace

Result<Report> bench_rocksdb(const RocksdbOptions& options) {
  RocksdbBench bench(options);
  return bench.run();
}

}  // namespace cairn::bench
