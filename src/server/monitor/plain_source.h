// SPDX-License-Identifier: Apache-2.0
// PlainSource: a process that tells nothing of itself but that it runs.
#pragma once

#include <string>
#include <utility>

#include "env/env.h"
#include "server/monitor/monitor.h"
#include "task/task.h"

namespace cairn::server {

class PlainSource final : public Monitor::Source {
 public:
  PlainSource(env::Env& env, std::string role)
      : env_(env), role_(std::move(role)), started_(env.now()) {}

  ProcessState state() override { return {.role = role_, .uptime = env_.now() - started_}; }
  task::Task<void> tell_metrics(MetricsText& /*text*/) override { co_return; }
  task::Task<Wellness> tell_health() override {
    const Json json = {{"schema_version", 1}, {"role", role_}, {"health", "ok"}};
    co_return Wellness{.health = drive::Health::kOk, .json = json.dump()};
  }

 private:
  env::Env& env_;
  const std::string role_;
  const Time started_;
};

}  // namespace cairn::server
