// SPDX-License-Identifier: Apache-2.0
// `cairn bench rocksdb`: RocksDB on a drive of a box, with batching and without.
#include "bench/rocksdb/rocksdb_bench.h"

#include "apps/bench/options.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

class BenchRocksdbCommand final : public Command {
 public:
  explicit BenchRocksdbCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (3); medians count");
    add_integer(app, "--keys N", options_.keys, {.min = 100, .max = 100'000'000},
                "keys put into each database (200000)");
    add_integer(app, "--reads N", options_.reads, {.min = 100, .max = 1'000'000'000},
                "reads of each reading phase (50000)");
    add_integer(app, "--threads N", options_.threads, {.min = 1, .max = 100},
                "threads that read (16)");
    add_integer(app, "--value-size N", options_.value_size, {.min = 1, .max = 65536},
                "bytes of each value (400)");
    add_size(app, "--memory SIZE", options_.memory,
             "size of each box's drive (1G); several times that of the data");
    add_host_and_box(app, where_);
    set_examples(app, {"cairn bench rocksdb", "cairn bench rocksdb --threads 32 --json",
                       "cairn bench rocksdb --keys 1000000 --memory 4G"});
  }

  Attempt<int> run() override {
    if (const Attempt<void> put = put_host_and_box(where_, options_); !put) {
      return std::unexpected(put.error());
    }
    const Result<bench::Report> report = bench::bench_rocksdb(options_);
    if (!report) return bench_stopped(report.error());
    say(json_ ? config::json_text(report->json()) : report->table());
    return kExitOk;
  }

 private:
  bench::RocksdbOptions options_;
  HostAndBox where_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_rocksdb(CLI::App& app) {
  return std::make_unique<BenchRocksdbCommand>(app);
}

}  // namespace cairn::apps
