// SPDX-License-Identifier: Apache-2.0
// `cairn view`: how the boxes of a pool are doing inside.
#pragma once

#include <memory>

#include "apps/common/command.h"

namespace cairn::apps {

std::unique_ptr<Command> make_view_top(CLI::App& app);
std::unique_ptr<Command> make_view_watch(CLI::App& app);
std::unique_ptr<Command> make_view_why(CLI::App& app);
std::unique_ptr<Command> make_view_query(CLI::App& app);

}  // namespace cairn::apps
