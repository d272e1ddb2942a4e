// SPDX-License-Identifier: Apache-2.0
// What there is to say about a command, and how --help shows it: what the command does, its usage,
// options and commands in two columns, examples.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace cairn::apps {

// "cairn config check": the words that lead to this command.
std::string full_name(const CLI::App& app);

// A name or an option as it is typed, and what it means.
using HelpRows = std::vector<std::pair<std::string, std::string>>;

// The one source of --help and of the command reference.
struct CommandHelp {
  std::string usage;
  HelpRows commands;
  HelpRows arguments;
  HelpRows options;
  std::string footer;
};
CommandHelp help_of(const CLI::App& app);

// Formats --help. No line is longer than 100 columns, but for words and examples that are.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

}  // namespace cairn::apps
