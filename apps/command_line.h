// SPDX-License-Identifier: Apache-2.0
// The command line as a whole: which commands there are, which one was asked for, what was wrong.
#pragma once

#include <span>
#include <string>

namespace cairn::apps {

// Runs `cairn WORDS...` and returns the exit status: kExitOk, kExitFailed, or kExitUsage when the
// words are not a command. Help goes to stdout, one sentence about a mistake to stderr.
int run_command_line(std::span<const std::string> words);

}  // namespace cairn::apps
