// SPDX-License-Identifier: Apache-2.0
// `cairn bench net`: how fast the network model is.
#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "apps/json_text.h"
#include "apps/output.h"
#include "bench/net_speed.h"

namespace cairn::apps {

namespace {

class BenchNetCommand final : public Command {
 public:
  explicit BenchNetCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (3); medians count");
    set_examples(app, {"cairn bench net", "cairn bench net --rounds 9 --json"});
  }

  Attempt<int> run() override {
    const bench::Report report = bench::bench_net(options_);
    say(json_ ? json_text(report.json()) : report.table());
    return kExitOk;
  }

 private:
  bench::NetSpeedOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_net(CLI::App& app) {
  return std::make_unique<BenchNetCommand>(app);
}

}  // namespace cairn::apps
