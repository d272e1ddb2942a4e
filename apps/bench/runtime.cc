// SPDX-License-Identifier: Apache-2.0
// `cairn bench runtime`: the worlds against plain sockets.

#include "bench/runtime.h"
#include "apps/bench/options.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "config/json_text.h"
#include "world/machine/backend.h"
#include "world/machine/facts.h"

namespace cairn::apps {

namespace {

class BenchRuntimeCommand final : public Command {
 public:
  explicit BenchRuntimeCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (15); medians count");
    add_number(app, "--seconds S", options_.load.seconds, 0.01, 3600, "length of one run (0.2)");
    add_only(app, options_.only, bench::runtime_parts());
    add_core_pair(app, cores_);
    add_switch(app, "--poll", options_.poll, "let the worlds spin instead of sleep");
    set_examples(app, {"cairn bench runtime", "cairn bench runtime --rounds 9 --json",
                       "cairn bench runtime --only pingpong --poll"});
  }

  Attempt<int> run() override {
    if (const Attempt<void> checked = check_core_pair(cores_); !checked) {
      return std::unexpected(checked.error());
    }
    options_.load.server_cpu = cores_.server;
    options_.load.client_cpu = cores_.client;
    options_.load.warm_up_seconds = options_.load.seconds / 5;
    options_.progress = progress_on_terminal();
    enter_worlds();
    const Result<bench::Report> report = bench::bench_runtime(options_);
    if (!report) return bench_stopped(report.error());
    say(json_ ? config::json_text(report->json()) : report->table());
    return kExitOk;
  }

 private:
  // A world that cannot run here is reported as skipped.
  void enter_worlds() {
    const machine::UringFacts facts = machine::gather_uring();
    for (const config::IoChoice io : {config::IoChoice::kUring, config::IoChoice::kEpoll}) {
      if (const Attempt<machine::Backend> backend = machine::choose_backend(io, facts); !backend) {
        options_.skipped.emplace_back(name(io), backend.error().text);
        continue;
      }
      options_.worlds.emplace_back(name(io), world_factory(io));
    }
  }

  bench::RuntimeOptions options_;
  CorePair cores_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_runtime(CLI::App& app) {
  return std::make_unique<BenchRuntimeCommand>(app);
}

}  // namespace cairn::apps
