// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper i10`: the paper's evaluation with our host and box, as one page.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/bench_options.h"
#include "apps/command.h"
#include "apps/files.h"
#include "apps/json_text.h"
#include "apps/output.h"
#include "bench/i10/paper.h"

namespace cairn::apps {

namespace {

class BenchPaperI10Command final : public Command {
 public:
  explicit BenchPaperI10Command(CLI::App& app) {
    add_value(app, "--out FILE", "write the page to this file (i10.html; with --json: none)",
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
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (3); medians count");
    add_number(app, "--seconds S", options_.seconds, 0.01, 3600, "length of one run (0.4)");
    add_only(app, options_.only, bench::i10::experiments());
    add_host_and_box(app, where_);
    set_examples(app, {"cairn bench paper i10", "cairn bench paper i10 --only load --svg docs",
                       "cairn bench paper i10 --json --out /tmp/i10.html"});
  }

  Attempt<int> run() override {
    if (const Attempt<void> put = put_host_and_box(where_, options_); !put) {
      return std::unexpected(put.error());
    }
    options_.epoll_world = world_factory(IoChoice::kEpoll);
    if (!json_ && page_file_.empty()) page_file_ = "i10.html";
    const Result<bench::i10::Paper> paper = bench::i10::bench_paper(options_);
    if (!paper) return bench_stopped(paper.error());
    if (const Attempt<void> written = write(*paper); !written) {
      return std::unexpected(written.error());
    }
    if (json_) {
      say(json_text(paper->report.json()));
    } else {
      say(paper->report.table());
      say(fmt::format("the page is in {}\n", page_file_));
    }
    return kExitOk;
  }

 private:
  Attempt<void> write(const bench::i10::Paper& paper) const {
    if (!page_file_.empty()) {
      const Attempt<void> written = replace_file(page_file_, paper.html);
      if (!written) return written;
    }
    if (plot_folder_.empty()) return {};
    for (const bench::i10::Chart& chart : paper.charts) {
      const Attempt<void> written = write_plot(plot_folder_, chart.name, chart.svg);
      if (!written) return written;
    }
    return {};
  }

  bench::i10::Options options_;
  HostAndBox where_;
  std::string page_file_;
  std::string plot_folder_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_paper_i10(CLI::App& app) {
  return std::make_unique<BenchPaperI10Command>(app);
}

}  // namespace cairn::apps
