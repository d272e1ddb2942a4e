// SPDX-License-Identifier: Apache-2.0
// `cairn bench sim`: how fast the models are, and how near a modelled drive comes to its model.
#include <algorithm>

#include "apps/bench/options.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "bench/flash_speed.h"
#include "bench/live_drive.h"
#include "bench/net_speed.h"
#include "bench/snis/paper.h"
#include "config/json_text.h"
#include "plan/flash/flash_profile.h"
#include "plan/snis/snis_system.h"

namespace cairn::apps {

namespace {

class BenchSimCommand final : public Command {
 public:
  explicit BenchSimCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", rounds_, {.min = 1, .max = 1000},
                "how often each is measured (3); medians count");
    add_number(app, "--seconds S", seconds_, 0.01, 3600, "length of a job on a live drive (1)");
    add_only(app, only_, {"flash", "net", "snis", "live"});
    set_examples(app, {"cairn bench sim", "cairn bench sim --only flash --rounds 9 --json"});
  }

  Attempt<int> run() override {
    bench::Report report("sim");
    if (wants("flash")) {
      bench::bench_flash({.rounds = rounds_, .progress = progress_on_terminal()}, report);
    }
    if (wants("net")) {
      bench::bench_net({.rounds = rounds_, .progress = progress_on_terminal()}, report);
    }
    if (wants("snis")) {
      Attempt<plan::SnisSystem> system = plan::load_system({});
      if (!system) return std::unexpected(system.error());
      bench::snis_paper::bench_snis({.system = std::move(system->system),
                                     .only = {"F_t_h"},
                                     .progress = progress_on_terminal()},
                                    report);
    }
    if (wants("live")) {
      if (const Attempt<void> done = measure_live(report); !done) {
        return std::unexpected(done.error());
      }
    }
    say(json_ ? config::json_text(report.json()) : report.table());
    return kExitOk;
  }

 private:
  bool wants(const char* part) const {
    return only_.empty() || std::ranges::find(only_, part) != only_.end();
  }
  Attempt<void> measure_live(bench::Report& report) const {
    const Attempt<bench::WorldFactory> world = check_host_and_box({});
    if (!world) return std::unexpected(world.error());
    Attempt<flash::Parameters> drive = plan::load_flash_profile("laptop-tlc");
    if (!drive) return std::unexpected(drive.error());
    const Result<void> done = bench::bench_live_drive(
        {.rounds = rounds_,
         .seconds = seconds_,
         .world = *world,
         .drive = std::make_shared<const flash::Parameters>(std::move(*drive)),
         .progress = progress_on_terminal()},
        report);
    if (!done) return bench_stopped(done.error());
    return {};
  }

  int rounds_ = 3;
  double seconds_ = 1;
  std::vector<std::string> only_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_sim(CLI::App& app) {
  return std::make_unique<BenchSimCommand>(app);
}

}  // namespace cairn::apps
