// SPDX-License-Identifier: Apache-2.0
// What an arbiter tells of itself over HTTP: whether it leads, and then how its pool and volumes
// are. One that stands by knows no pool.
#pragma once

#include "arbiter/arbiter_host.h"
#include "base/metrics_text.h"
#include "base/units.h"
#include "env/env.h"
#include "server/arbiter/health.h"
#include "server/monitor/monitor.h"
#include "task/task.h"

namespace cairn::server {

// The host and what knows its health outlive it. Of volumes the first 1024 by name are told one by
// one.
class ArbiterSource final : public Monitor::Source {
 public:
  ArbiterSource(env::Env& env, arbiter::ArbiterHost& host, ArbiterHealth& health)
      : env_(env), host_(host), health_(health), started_(env.now()) {}

  ProcessState state() override;
  task::Task<void> tell_metrics(MetricsText& text) override;
  // As ArbiterHealth has it.
  task::Task<Wellness> tell_health() override;

 private:
  env::Env& env_;
  arbiter::ArbiterHost& host_;
  ArbiterHealth& health_;
  const Time started_;
};

}  // namespace cairn::server
