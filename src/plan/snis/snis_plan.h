// SPDX-License-Identifier: Apache-2.0
// Hardware of a plan as a system that can be simulated, and what a plan looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/problem.h"
#include "snis/plan.h"
#include "snis/system.h"

namespace cairn::plan {

struct PlanParts {
  flash::Parameters drive;
  double occupancy = 0;
  net::Parameters network;
  double link_gbps = 25;  // of a box; several act as one
  double host_link_gbps = 100;
  uint32_t initiators = 10;
};

// Boxes and initiators around one switch. Check it before use.
snis::System system_of(const PlanParts& parts, const snis::Hardware& hardware);

struct PlanOutcome {
  std::string load;
  uint64_t requests = 0;  // that each trial ran
  bool cut = false;       // they are the first of a trace that has more
  // That a cut trace has in all; nothing when it cannot be read to its end.
  std::optional<uint64_t> requests_in_trace = {};
  double iops = 0;
  double p99_ns_max = 0;
  snis::Plan plan;
};
std::string plan_text(const PlanOutcome& outcome);
std::string plan_json(const PlanOutcome& outcome);
std::string plan_page(const PlanOutcome& outcome);

}  // namespace cairn::plan
