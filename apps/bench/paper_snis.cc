// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper snis`: the paper's tables and figures with our models, as one page.

#include "apps/bench/options.h"
#include "apps/bench/paper_output.h"
#include "apps/common/command.h"
#include "bench/snis/paper.h"
#include "plan/snis/snis_system.h"

namespace cairn::apps {

namespace {

class BenchPaperSnisCommand final : public Command {
 public:
  explicit BenchPaperSnisCommand(CLI::App& app) : output_(app, "snis.html") {
    add_integer(app, "--requests N", requests_, {.min = 10, .max = 1'000'000},
                "of each trace (10000)");
    add_integer(app, "--seed N", options_.seed, {.min = 0, .max = 1'000'000'000},
                "of the traces (1)");
    add_switch(app, "--no-fixed-points", no_fixed_points_,
               "do not iterate until nothing moves, which takes minutes");
    add_only(app, options_.only, bench::snis_paper::traces());
    add_choices(app, "--figure N", options_.figures, bench::snis_paper::figures(),
                "show just this figure");
    set_examples(app, {"cairn bench paper snis", "cairn bench paper snis --figure 2",
                       "cairn bench paper snis --only F_t_h --json",
                       "cairn bench paper snis --no-fixed-points --out /tmp/snis.html"});
  }

  Attempt<int> run() override {
    Attempt<plan::SnisSystem> system = plan::load_system({});
    if (!system) return std::unexpected(system.error());
    options_.system = std::move(system->system);
    options_.requests = static_cast<uint64_t>(requests_);
    options_.fixed_points = !no_fixed_points_;
    return output_.put(bench::snis_paper::bench_paper(options_));
  }

 private:
  bench::snis_paper::Options options_;
  int requests_ = 10'000;
  bool no_fixed_points_ = false;
  PaperOutput output_;
};

}  // namespace

std::unique_ptr<Command> make_bench_paper_snis(CLI::App& app) {
  return std::make_unique<BenchPaperSnisCommand>(app);
}

}  // namespace cairn::apps
