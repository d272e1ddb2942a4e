// SPDX-License-Identifier: Apache-2.0
// What shells know of cairn's commands and options, from the same source as --help.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"

namespace CLI {
class App;
}  // namespace CLI

namespace cairn::apps {

// A script for "bash", "zsh" or "fish" that completes the commands below `root`, their options,
// and files where an option or an argument takes something else. The Problem: another shell.
Attempt<std::string> completion_script(const CLI::App& root, std::string_view shell);

}  // namespace cairn::apps
