// SPDX-License-Identifier: Apache-2.0
// The command line as a whole: which command was asked for, and what was wrong.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::apps {

class CommandTree;

// What follows a program's name.
std::vector<std::string> args_of(int argc, char** argv);

// False, after a sentence on stderr, when another program started this one, `program`, and is of
// another version or commit: `cairn` and `cairn-lab` have servers and options in common.
bool is_started_by_its_like(std::string_view program);

// Runs `cairn ARGS...` with the tree's commands and returns the exit status: kExitOk, kExitFailed,
// or kExitUsage when the arguments are not a command. Help goes to stdout, one sentence about a
// mistake to stderr. Commands that another program has replace this process by it.
int run_command_line(CommandTree& tree, std::span<const std::string> args);

}  // namespace cairn::apps
