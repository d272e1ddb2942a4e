// SPDX-License-Identifier: Apache-2.0
// CommandTree: which commands a program has, and what runs at the leaves.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/command.h"

namespace cairn::apps {

class CommandTree {
 public:
  CommandTree();
  ~CommandTree();
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  CLI::App& root() { return *root_; }
  // Commands under one name.
  static CLI::App& group(CLI::App& parent, const std::string& name, const std::string& what);
  // A command, which may have others below it.
  CLI::App& add(CLI::App& parent, const std::string& name, const std::string& what,
                std::unique_ptr<Command> (*make)(CLI::App&));
  // A first word whose commands another program has, which lies beside this one.
  void add_elsewhere(const std::string& name, const std::string& what, std::string_view program);
  // A command that has another name now. Both are the words after `cairn`: "sim ssd", "plan ssd".
  void add_renamed(std::string_view old_command, std::string_view new_command);

  // The program that runs what begins with this word; none: this one.
  std::optional<std::string_view> program_of(std::string_view word) const;
  // The old and the new name of the command that these words begin with; none: it is not renamed.
  struct Renamed {
    std::string_view old_command, new_command;
  };
  std::optional<Renamed> renamed(std::span<const std::string> args) const;
  // The deepest command that was named.
  CLI::App& named();
  // Null for the root and for groups.
  Command* command_of(const CLI::App& app);

 private:
  std::unique_ptr<CLI::App> root_;
  std::vector<std::pair<const CLI::App*, std::unique_ptr<Command>>> leaves_;
  std::vector<std::pair<std::string, std::string_view>> elsewhere_;  // first words, programs
  std::vector<Renamed> renamed_;
};

}  // namespace cairn::apps
