// SPDX-License-Identifier: Apache-2.0
// What a server tells of itself over HTTP, and its counters at the control socket.
#pragma once

#include <string>

#include "base/metrics_text.h"
#include "server/monitor/monitor.h"
#include "server/serve/server.h"
#include "task/task.h"

namespace cairn::server {

// All of them, in the text form. The number of lines depends on listeners, subsystems,
// namespaces and layers, not on hosts. docs/box.md lists the names.
task::Task<std::string> metrics_of(Server& server);

// The server outlives it.
class ServerSource final : public Monitor::Source {
 public:
  explicit ServerSource(Server& server) : server_(server) {}
  ProcessState state() override;
  task::Task<void> tell_metrics(MetricsText& text) override;
  // Ok, or how well the worst of its drives is; with the reasons of each that is not well.
  task::Task<Wellness> tell_health() override;

 private:
  Server& server_;
};

}  // namespace cairn::server
