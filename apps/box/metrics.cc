// SPDX-License-Identifier: Apache-2.0
// `cairn box metrics`: a running box's counters for Prometheus.

#include "apps/box/client.h"
#include "apps/common/command.h"

namespace cairn::apps {

namespace {

class MetricsCommand final : public Command {
 public:
  explicit MetricsCommand(CLI::App& app) : client_(app) {
    set_examples(app,
                 {"cairn box metrics", "cairn box metrics > /var/lib/node_exporter/cairn.prom"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> answer =
        client_.ask({.command = server::ControlRequest::Command::kMetrics});
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, server::text_at(*answer, "metrics"));
    return kExitOk;
  }

 private:
  BoxClient client_;
};

}  // namespace

std::unique_ptr<Command> make_box_metrics(CLI::App& app) {
  return std::make_unique<MetricsCommand>(app);
}

}  // namespace cairn::apps
