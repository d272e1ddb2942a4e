// SPDX-License-Identifier: Apache-2.0
// Running a server as a process: world, signals, files, and what is printed about it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "config/settings.h"
#include "server/config/keys.h"
#include "server/serve/server.h"

namespace cairn::apps {

// Serves until SIGINT or SIGTERM, then drains; a second signal ends the process at once. `greet` is
// told when clients can connect.
Attempt<int> run_server(const config::Settings& settings, const server::ServerConfig& config,
                        std::function<void(const server::Server&)> greet);

// The names of what a server serves.
std::vector<std::string> nqns_of(const server::ServerOptions& options);

}  // namespace cairn::apps
