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
// Shown at the end of the command's help, one line each.
void set_examples(CLI::App& app, const std::vector<std::string>& lines);

}  // namespace cairn::apps
