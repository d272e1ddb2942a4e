// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper i10`: the paper's evaluation with our host and box, as one page.

#include "apps/bench/options.h"
#include "apps/bench/paper_output.h"
#include "apps/common/command.h"
#include "bench/i10/paper.h"

namespace cairn::apps {

namespace {

class BenchPaperI10Command final : public Command {
 public:
  explicit BenchPaperI10Command(CLI::App& app) : output_(app, "i10.html") {
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
    options_.epoll_world = world_factory(config::IoChoice::kEpoll);
    const Result<bench::Paper> paper = bench::i10::bench_paper(options_);
    if (!paper) return bench_stopped(paper.error());
    return output_.put(*paper);
  }

 private:
  bench::i10::Options options_;
  HostAndBox where_;
  PaperOutput output_;
};

}  // namespace

std::unique_ptr<Command> make_bench_paper_i10(CLI::App& app) {
  return std::make_unique<BenchPaperI10Command>(app);
}

}  // namespace cairn::apps
