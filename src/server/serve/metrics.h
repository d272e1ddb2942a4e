// SPDX-License-Identifier: Apache-2.0
// A box's counters for Prometheus.
#pragma once

#include <string>

#include "server/serve/server.h"
#include "task/task.h"

namespace cairn::server {

// All of them, in the text form. The number of lines depends on listeners, subsystems and
// namespaces, not on hosts. docs/box.md lists the names.
task::Task<std::string> metrics_of(Server& server);

}  // namespace cairn::server
