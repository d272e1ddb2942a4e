// SPDX-License-Identifier: Apache-2.0
// UpSource: what `cairn up` tells over HTTP: how it is, and the figures of its parts.
#pragma once

#include <functional>
#include <string>

#include "base/metrics_text.h"
#include "env/env.h"
#include "server/monitor/monitor.h"
#include "server/serve/server.h"
#include "server/up/up_health.h"
#include "task/task.h"

namespace cairn::server {

// What it speaks of outlives it.
class UpSource final : public Monitor::Source {
 public:
  // `status` is what the control socket answers too.
  UpSource(env::Env& env, UpHealth& health, std::function<Json()> status)
      : env_(env), health_(health), status_(std::move(status)), started_(env.now()) {}

  // Parts that tell figures; null: they are not there.
  void set_server(Server* server) { server_ = server; }
  void set_arbiter(Monitor::Source* arbiter) { arbiter_ = arbiter; }
  void set_keys(Monitor::Source* keys) { keys_ = keys; }

  ProcessState state() override;
  task::Task<void> tell_metrics(MetricsText& text) override;
  task::Task<Wellness> tell_health() override;
  task::Task<std::string> tell_status() override;

 private:
  env::Env& env_;
  UpHealth& health_;
  const std::function<Json()> status_;
  const Time started_;
  Server* server_ = nullptr;
  Monitor::Source* arbiter_ = nullptr;
  Monitor::Source* keys_ = nullptr;
};

}  // namespace cairn::server
