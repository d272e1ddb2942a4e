// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper snis`: the paper's tables and figures with our models, as one page.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/bench_options.h"
#include "apps/command.h"
#include "apps/files.h"
#include "apps/json_text.h"
#include "apps/output.h"
#include "apps/sim/snis_system.h"
#include "bench/snis/paper.h"

namespace cairn::apps {

namespace {

class BenchPaperSnisCommand final : public Command {
 public:
  explicit BenchPaperSnisCommand(CLI::App& app) {
    add_value(app, "--out FILE", "write the page to this file (snis.html; with --json: none)",
              [this](const std::string& path) -> Attempt<void> {
                page_file_ = path;
                return {};
              });
    add_value(app, "--svg DIR", "also write each plot into this folder",
              [this](const std::string& path) -> Attempt<void> {
                plot_folder_ = path;
                return {};
              });
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
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
    Attempt<SnisSystem> system = load_system({});
    if (!system) return std::unexpected(system.error());
    options_.system = std::move(system->system);
    options_.requests = static_cast<uint64_t>(requests_);
    options_.fixed_points = !no_fixed_points_;
    if (!json_ && page_file_.empty()) page_file_ = "snis.html";
    const bench::snis_paper::Paper paper = bench::snis_paper::bench_paper(options_);
    if (!page_file_.empty()) {
      if (const Attempt<void> written = replace_file(page_file_, paper.html); !written) {
        return std::unexpected(written.error());
      }
    }
    for (const bench::snis_paper::Chart& chart : paper.charts) {
      if (plot_folder_.empty()) break;
      if (const Attempt<void> written = write_plot(plot_folder_, chart.name, chart.svg); !written) {
        return std::unexpected(written.error());
      }
    }
    say(json_ ? json_text(paper.report.json()) : paper.report.table());
    if (!json_) say(fmt::format("the page is in {}\n", page_file_));
    return kExitOk;
  }

 private:
  bench::snis_paper::Options options_;
  int requests_ = 10'000;
  bool no_fixed_points_ = false;
  std::string page_file_;
  std::string plot_folder_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_paper_snis(CLI::App& app) {
  return std::make_unique<BenchPaperSnisCommand>(app);
}

}  // namespace cairn::apps
