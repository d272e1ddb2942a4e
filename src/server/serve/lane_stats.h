// SPDX-License-Identifier: Apache-2.0
// What a box tells of its connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fabric/target/report.h"
#include "server/control/control_format.h"
#include "server/serve/server.h"

namespace cairn::server {

// Connections that are told of one by one: the busiest. All are in the totals.
inline constexpr size_t kLanesListed = 32;

// "connections", "lane_totals" by listener, subsystem and kind of queue, "lanes" and "lanes_more".
// An empty `nqn` means all subsystems; connections that belong to none are in the totals then.
Json lane_stats(Server& server, const fabric::TargetReport& report, std::string_view nqn);

}  // namespace cairn::server
