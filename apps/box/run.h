// SPDX-License-Identifier: Apache-2.0
// Running a box as a process: world, signals, files, and what is printed about it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "config/settings.h"
#include "server/config/keys.h"
#include "server/serve/box.h"

namespace cairn::apps {

// Serves until SIGINT or SIGTERM, then drains; a second signal ends the process at once. `greet` is
// told when hosts can connect.
Attempt<int> run_box(const config::Settings& settings, const server::BoxConfig& config,
                     std::function<void(const server::Box&)> greet);

// The names of what a box serves.
std::vector<std::string> nqns_of(const server::BoxOptions& options);

}  // namespace cairn::apps
