// SPDX-License-Identifier: Apache-2.0
// `cairn bench drive`: what services, doors and idle drives cost, and what a guest gets of them.
#include <filesystem>

#include "apps/bench/options.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "bench/drive/drive_bench.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

class BenchDriveCommand final : public Command {
 public:
  explicit BenchDriveCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (5); medians count");
    add_number(app, "--seconds S", options_.seconds, 0.02, 3600, "length of one run (0.5)");
    add_integer(app, "--requests N", requests_, {.min = 100, .max = 100'000'000},
                "of one run of a service (20000)");
    add_value(app, "--folder DIR",
              "for files up to 256 MiB while it runs (that of temporary files)",
              [this](const std::string& text) -> Attempt<void> {
                options_.folder = text;
                return {};
              });
    add_only(app, options_.only, bench::drive_bench_parts());
    add_host_and_box(app, where_);
    set_examples(app, {"cairn bench drive", "cairn bench drive --only services --rounds 9 --json",
                       "cairn bench drive --only nbd --folder /var/tmp",
                       "cairn bench drive --only guest --rounds 3 --seconds 2"});
  }

  Attempt<int> run() override {
    const Attempt<bench::WorldFactory> world = check_host_and_box(where_);
    if (!world) return std::unexpected(world.error());
    std::error_code error;
    if (options_.folder.empty()) {
      options_.folder = std::filesystem::temp_directory_path(error).string();
    }
    options_.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    options_.world = *world;
    options_.server_cpu = where_.cores.server;
    options_.client_cpu = where_.cores.client;
    options_.requests = static_cast<uint64_t>(requests_);
    options_.progress = progress_on_terminal();
    const Result<bench::Report> report = bench::bench_drive(options_);
    if (!report) return bench_stopped(report.error());
    say(json_ ? config::json_text(report->json()) : report->table());
    return kExitOk;
  }

 private:
  bench::DriveBenchOptions options_;
  HostAndBox where_;
  int requests_ = 20'000;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_drive(CLI::App& app) {
  return std::make_unique<BenchDriveCommand>(app);
}

}  // namespace cairn::apps
