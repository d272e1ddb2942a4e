// SPDX-License-Identifier: Apache-2.0
// Command: one sub-command of cairn. Each has a file of its own with its make_ function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "config/settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cairn::apps {

// Made with its options declared on a CLI::App that outlives it; run once, after they were parsed.
class Command {
 public:
  virtual ~Command() = default;
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Prints to stdout; returns the exit status. A Problem is printed to stderr, status kExitFailed.
  virtual Attempt<int> run() = 0;
};

// How commands declare what is the same in several of them.

// An option with a value, `spec` being "--cores LIST". `take` stores the value or returns the
// Problem with it, which the user sees after the option's name.
CLI::Option* add_value(CLI::App& app, std::string_view spec, std::string help,
                       std::function<Attempt<void>(const std::string&)> take);
// The same for an option that may be given several times; `take` is told each value in turn.
CLI::Option* add_values(CLI::App& app, std::string_view spec, std::string help,
                        std::function<Attempt<void>(const std::string&)> take);
// A text that is stored as it is.
CLI::Option* add_text(CLI::App& app, std::string_view spec, std::string& into, std::string help);
// An argument, which must be given unless it is optional(). What `take` refuses is told without the
// argument's name.
CLI::Option* add_argument(CLI::App& app, const std::string& name, std::string help,
                          std::function<Attempt<void>(const std::string&)> take);
CLI::Option* add_switch(CLI::App& app, std::string name, bool& into, std::string help);
// A number from `min` to `max`.
CLI::Option* add_number(CLI::App& app, std::string_view spec, double& into, double min, double max,
                        std::string help);
CLI::Option* add_integer(CLI::App& app, std::string_view spec, int& into,
                         config::IntegerRange range, std::string help);
// Bytes, as config::parse_bytes takes them.
CLI::Option* add_size(CLI::App& app, std::string_view spec, uint64_t& into, std::string help);
// --io alone.
void add_io(CLI::App& app, std::optional<config::IoChoice>& io);
// --io, --cores, --poll, --config, --log-level.
void add_settings(CLI::App& app, config::SettingsOptions& options);

// What else there is to say about an option or argument that was declared. They return it.
CLI::Option* required(CLI::Option* option);
CLI::Option* optional(CLI::Option* option);
// Of add_values(): any number of values in a row, not one each time that it is named.
CLI::Option* any_number(CLI::Option* option);
// Without a value `take` is told "" or "true".
CLI::Option* value_optional(CLI::Option* option);
// At most one of them may be given.
void not_both(CLI::Option* one, CLI::Option* other);
// After the words were parsed.
bool was_given(const CLI::Option& option);

// The command's last word: "check" of `cairn config check`.
std::string name_of(const CLI::App& app);
// Shown at the end of the command's help, one line each.
void set_examples(CLI::App& app, const std::vector<std::string>& lines);

}  // namespace cairn::apps
