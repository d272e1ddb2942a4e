// SPDX-License-Identifier: Apache-2.0
// What a server does when it is asked at its control socket.
#pragma once

#include "base/problem.h"
#include "server/control/control_format.h"
#include "server/serve/server.h"
#include "task/task.h"

namespace cairn::server {

// At most so many of a list are in a reply; the rest is counted.
inline constexpr size_t kListedMax = 1000;

// The result as an object, or what the person who asked should know.
task::Task<Attempt<Json>> execute(Server& server, ControlRequest request);

}  // namespace cairn::server
