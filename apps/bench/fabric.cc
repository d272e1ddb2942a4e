// SPDX-License-Identifier: Apache-2.0
// `cairn bench fabric`: host and box over loopback against the bare exchange of the same bytes.

#include "bench/fabric.h"
#include "apps/bench/options.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

class BenchFabricCommand final : public Command {
 public:
  explicit BenchFabricCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (5); medians count");
    add_number(app, "--seconds S", options_.seconds, 0.01, 3600, "length of one run (0.5)");
    add_only(app, options_.only, bench::fabric_loads());
    add_host_and_box(app, where_);
    set_examples(app, {"cairn bench fabric", "cairn bench fabric --only read4k --rounds 9 --json",
                       "cairn bench fabric --io epoll"});
  }

  Attempt<int> run() override {
    if (const Attempt<void> put = put_host_and_box(where_, options_); !put) {
      return std::unexpected(put.error());
    }
    const Result<bench::Report> report = bench::bench_fabric(options_);
    if (!report) return bench_stopped(report.error());
    say(json_ ? config::json_text(report->json()) : report->table());
    return kExitOk;
  }

 private:
  bench::FabricOptions options_;
  HostAndBox where_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_fabric(CLI::App& app) {
  return std::make_unique<BenchFabricCommand>(app);
}

}  // namespace cairn::apps
