// SPDX-License-Identifier: Apache-2.0
// What a door says of itself: INFO in Redis's form, and all counters for Prometheus.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/metrics_text.h"
#include "door/resp/door_state.h"

namespace cairn::door::resp {

// The sections that are named, in their usual order; none named, "default", "all" or "everything":
// all of them.
std::string info_text(const DoorState& door, std::span<const std::string_view> sections);

void add_metrics(MetricsText& text, const DoorState& door);
std::string metrics_text(const DoorState& door);

}  // namespace cairn::door::resp
