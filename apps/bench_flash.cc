// SPDX-License-Identifier: Apache-2.0
// `cairn bench flash`: how fast the flash model is.
#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "apps/json_text.h"
#include "apps/output.h"
#include "bench/flash_speed.h"

namespace cairn::apps {

namespace {

class BenchFlashCommand final : public Command {
 public:
  explicit BenchFlashCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (3); medians count");
    set_examples(app, {"cairn bench flash", "cairn bench flash --rounds 9 --json"});
  }

  Attempt<int> run() override {
    const bench::Report report = bench::bench_flash(options_);
    say(json_ ? json_text(report.json()) : report.table());
    return kExitOk;
  }

 private:
  bench::FlashSpeedOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_flash(CLI::App& app) {
  return std::make_unique<BenchFlashCommand>(app);
}

}  // namespace cairn::apps
