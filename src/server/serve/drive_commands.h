// SPDX-License-Identifier: Apache-2.0
// What a server does when it is asked for something of its drives and their doors.
#pragma once

#include "base/problem.h"
#include "server/control/control_format.h"
#include "server/serve/server.h"
#include "task/task.h"

namespace cairn::server {

// The commands drive.* and door.*: the result as an object, or what the person who asked should
// know.
task::Task<Attempt<Json>> execute_for_drive(Server& server, ControlRequest request);

// Name and health of a drive, with the reasons.
Json health_of(const Server& server, const ServedDrive& drive);

}  // namespace cairn::server
