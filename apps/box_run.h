// SPDX-License-Identifier: Apache-2.0
// Running a box as a process: world, signals, files, and what is printed about it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/box/box.h"
#include "apps/box/keys.h"
#include "apps/problem.h"
#include "apps/settings.h"

namespace cairn::apps {

// Serves until SIGINT or SIGTERM, then drains; a second signal ends the process at once. `greet` is
// told when hosts can connect.
Attempt<int> run_box(const Settings& settings, const BoxConfig& config,
                     std::function<void(const Box&)> greet);

// How a host on this machine names an address we listen at: "127.0.0.1" and "4420".
struct Reach {
  std::string host;  // IPv6 without brackets
  std::string port;
};
Reach reach(const env::Address& at);

// The names of what a box serves.
std::vector<std::string> nqns_of(const BoxOptions& options);

}  // namespace cairn::apps
