// SPDX-License-Identifier: Apache-2.0
// `cairn help`: every command on one page, from the same source as --help.
#pragma once

#include <memory>
#include <string>

#include "apps/common/command.h"

namespace cairn::apps {

// docs/commands.md: a section for each command below `root`, in the order of --help. Says nothing
// about the machine it is made on.
std::string command_reference(const CLI::App& root);

// `app` is a child of the command whose tree it shows.
std::unique_ptr<Command> make_help(CLI::App& app);

}  // namespace cairn::apps
