// SPDX-License-Identifier: Apache-2.0
// What every process of Cairn tells of itself, whatever it does.
#pragma once

#include <string>
#include <string_view>

#include "base/metrics_text.h"
#include "base/units.h"
#include "drive/health.h"
#include "env/env.h"

namespace cairn::server {

// How well a process is: 0 ok, 1 degraded, 2 failing, as all health is in metrics.
uint64_t health_number(drive::Health health);

struct ProcessState {
  std::string_view role;  // "serve", "arbiter", "kv"
  Duration uptime;
  drive::Health health = drive::Health::kOk;
};

// cairn_build_info, cairn_start_time_seconds, cairn_health.
void add_process(MetricsText& text, env::Env& env, const ProcessState& state);

}  // namespace cairn::server
