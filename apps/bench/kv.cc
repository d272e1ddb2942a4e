// SPDX-License-Identifier: Apache-2.0
// `cairn bench kv`: the key-value store next to RocksDB and Redis.
#include <filesystem>
#include <memory>
#include <utility>

#include "apps/bench/options.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "bench/kv/kv_bench.h"
#include "config/json_text.h"
#include "plan/flash/flash_profile.h"

namespace cairn::apps {

namespace {

class BenchKvCommand final : public Command {
 public:
  explicit BenchKvCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (5); medians count");
    add_number(app, "--seconds S", options_.seconds, 0.02, 3600, "length of one run (2)");
    add_integer(app, "--records N", records_, {.min = 1000, .max = 100'000'000},
                "that workloads and redis-benchmark are about (400000)");
    add_integer(app, "--objects N", objects_, {.min = 1000, .max = 1'000'000'000},
                "of the largest store whose memory is measured (20000000)");
    add_integer(app, "--depth N", depth_, {.min = 1, .max = 4096},
                "operations at once (64): tasks of ours, threads of RocksDB's");
    add_number(app, "--full PART", options_.full, 0.05, 0.75,
               "how full workloads find the store's drive (0.5); d adds a quarter of that");
    add_number(app, "--rate R", options_.rate, 1, 10'000'000,
               "operations per second where latencies are compared (5000)");
    add_size(app, "--capacity SIZE", options_.capacity_bytes,
             "of the drive that is filled (1G), 64M at least");
    add_value(app, "--folder DIR",
              "for files while it runs, 9 GiB with all objects (that of temporary files)",
              [this](const std::string& text) -> Attempt<void> {
                options_.folder = text;
                return {};
              });
    add_switch(app, "--buffered", options_.buffered,
               "files through the page cache, as in a folder that is in memory");
    add_only(app, options_.only, bench::kv_bench_parts());
    add_host_and_box(app, where_);
    set_examples(app, {"cairn bench kv --folder /dev/shm --buffered --json",
                       "cairn bench kv --only ycsb --rounds 3 --seconds 1",
                       "cairn bench kv --only memory --objects 1000000 --folder /var/tmp"});
  }

  Attempt<int> run() override {
    const Attempt<bench::WorldFactory> world = check_host_and_box(where_);
    if (!world) return std::unexpected(world.error());
    if (options_.capacity_bytes < 64_MiB) return refuse("--capacity is 64M at least");
    Attempt<flash::Parameters> drive = plan::load_flash_profile("laptop-tlc");
    if (!drive) return std::unexpected(drive.error());
    options_.flash = std::make_shared<const flash::Parameters>(std::move(*drive));
    std::error_code error;
    if (options_.folder.empty()) {
      options_.folder = std::filesystem::temp_directory_path(error).string();
    }
    options_.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    options_.world = *world;
    options_.server_cpu = where_.cores.server;
    options_.client_cpu = where_.cores.client;
    options_.records = static_cast<uint64_t>(records_);
    options_.objects = static_cast<uint64_t>(objects_);
    options_.depth = static_cast<uint32_t>(depth_);
    options_.progress = progress_on_terminal();
    const Result<bench::Report> report = bench::bench_kv(options_);
    if (!report) return bench_stopped(report.error());
    say(json_ ? config::json_text(report->json()) : report->table());
    return kExitOk;
  }

 private:
  bench::KvBenchOptions options_;
  HostAndBox where_;
  int records_ = 400'000;
  int objects_ = 20'000'000;
  int depth_ = 64;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_kv(CLI::App& app) {
  return std::make_unique<BenchKvCommand>(app);
}

}  // namespace cairn::apps
