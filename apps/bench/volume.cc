// SPDX-License-Identifier: Apache-2.0
// `cairn bench volume`: elastic volumes next to plain drives and stripes.

#include "apps/bench/options.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "bench/volume/volume_bench.h"
#include "config/json_text.h"
#include "plan/flash/flash_profile.h"

namespace cairn::apps {

namespace {

constexpr const char* kProfile = "laptop-tlc";
constexpr const char* kBoxProfile = "fs1600-small";

class BenchVolumeCommand final : public Command {
 public:
  explicit BenchVolumeCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (5); medians count");
    add_number(app, "--seconds S", options_.seconds, 0.01, 3600, "length of one run (0.3)");
    add_only(app, options_.only, bench::volume_parts());
    add_host_and_box(app, where_);
    set_examples(app, {"cairn bench volume", "cairn bench volume --only cost --rounds 9 --json"});
  }

  Attempt<int> run() override {
    Attempt<bench::WorldFactory> world = check_host_and_box(where_);
    if (!world) return std::unexpected(world.error());
    Attempt<flash::Parameters> flash = plan::load_flash_profile(kProfile);
    if (!flash) return std::unexpected(flash.error());
    Attempt<flash::Parameters> of_box = plan::load_flash_profile(kBoxProfile);
    if (!of_box) return std::unexpected(of_box.error());
    options_.box_drive = std::make_shared<const flash::Parameters>(std::move(*of_box));
    options_.world = std::move(*world);
    options_.flash = std::make_shared<const flash::Parameters>(std::move(*flash));
    options_.progress = progress_on_terminal();
    const Result<bench::Report> report = bench::bench_volume(options_);
    if (!report) return bench_stopped(report.error());
    say(json_ ? config::json_text(report->json()) : report->table());
    return kExitOk;
  }

 private:
  bench::VolumeBenchOptions options_;
  HostAndBox where_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_volume(CLI::App& app) {
  return std::make_unique<BenchVolumeCommand>(app);
}

}  // namespace cairn::apps
