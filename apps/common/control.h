// SPDX-License-Identifier: Apache-2.0
// What every command that serves declares about being asked, and about telling what changed.
#pragma once

#include <functional>
#include <string>

#include "apps/common/command.h"
#include "base/problem.h"

namespace cairn::apps {

// --control PATH, which becomes a whole path; or "off".
void add_control(CLI::App& app, std::string& into);
// Where a process of this kind is asked, "server", "arbiter", "kv" or "rack"; none: nowhere.
std::function<Attempt<std::string>()> control_path(const std::string& said, std::string kind);

// --on-event COMMAND.
void add_on_event(CLI::App& app, std::string& into);

}  // namespace cairn::apps
