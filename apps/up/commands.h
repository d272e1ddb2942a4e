// SPDX-License-Identifier: Apache-2.0
// `cairn up`, and what is asked of the one that runs.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_up(CLI::App& app);
std::unique_ptr<Command> make_up_status(CLI::App& app);
std::unique_ptr<Command> make_up_down(CLI::App& app);
std::unique_ptr<Command> make_demo_kill_drive(CLI::App& app);

}  // namespace cairn::apps
