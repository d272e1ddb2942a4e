// SPDX-License-Identifier: Apache-2.0
// `cairn bench rpc`: a call between processes of ours against the bare exchange of its bytes.

#include "bench/rpc.h"
#include "apps/bench/options.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

class BenchRpcCommand final : public Command {
 public:
  explicit BenchRpcCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (9); medians count");
    add_number(app, "--seconds S", options_.load.seconds, 0.01, 3600, "length of one run (0.2)");
    add_host_and_box(app, where_);
    set_examples(app, {"cairn bench rpc", "cairn bench rpc --rounds 3 --io epoll --json"});
  }

  Attempt<int> run() override {
    Attempt<bench::WorldFactory> world = check_host_and_box(where_);
    if (!world) return std::unexpected(world.error());
    options_.world = std::move(*world);
    options_.load.server_cpu = where_.cores.server;
    options_.load.client_cpu = where_.cores.client;
    options_.load.warm_up_seconds = options_.load.seconds / 5;
    options_.progress = progress_on_terminal();
    const Result<bench::Report> report = bench::bench_rpc(options_);
    if (!report) return bench_stopped(report.error());
    say(json_ ? config::json_text(report->json()) : report->table());
    return kExitOk;
  }

 private:
  bench::RpcOptions options_;
  HostAndBox where_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_rpc(CLI::App& app) {
  return std::make_unique<BenchRpcCommand>(app);
}

}  // namespace cairn::apps
