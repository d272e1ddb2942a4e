// SPDX-License-Identifier: Apache-2.0
// What a box tells of its modelled drives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/control/control_format.h"
#include "server/serve/server.h"

namespace cairn::server {

// One object for each modelled drive of the subsystem: the model's inside, and how much later than
// the model said requests went on.
std::vector<Json> flash_stats(Server& server, std::string_view nqn);

// The same as a table for people; empty when there is none.
std::string flash_stats_text(const Json& answer);

}  // namespace cairn::server
