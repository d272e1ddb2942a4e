// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/process_metrics.h"

#include "report/build_info.h"

namespace cairn::server {

uint64_t health_number(drive::Health health) {
  switch (health) {
    case drive::Health::kOk:
      return 0;
    case drive::Health::kDegraded:
      return 1;
    case drive::Health::kFailing:
      return 2;
  }
  return 2;
}

void add_process(MetricsText& text, env::Env& env, const ProcessState& state) {
  using Type = MetricsText::Type;
  const report::BuildInfo& build = report::build_info();
  text.family(Type::kGauge, "cairn_build_info", "Which Cairn this is, and what it does; always 1.");
  text.sample({{"role", state.role}, {"version", build.version}, {"commit", build.commit}}, 1);
  text.family(Type::kGauge, "cairn_start_time_seconds",
              "When the process began to serve, in seconds since 1970.");
  text.seconds({}, Duration{env.wall_now().ns - state.uptime.ns});
  text.family(Type::kGauge, "cairn_health",
              "How well the process is: 0 ok, 1 degraded, 2 failing.");
  text.sample({}, health_number(state.health));
}

}  // namespace cairn::server
