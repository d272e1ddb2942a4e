// SPDX-License-Identifier: Apache-2.0
// CommandTable: all commands by their names.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "door/resp/command.h"

namespace cairn::door::resp {

// Each file of commands has its own list.
std::span<const Command> string_commands();
std::span<const Command> number_commands();
std::span<const Command> range_commands();
std::span<const Command> key_commands();
std::span<const Command> expiry_commands();
std::span<const Command> scan_commands();
std::span<const Command> transaction_commands();
std::span<const Command> connection_commands();
std::span<const Command> client_commands();
std::span<const Command> server_commands();
std::span<const Command> config_commands();
std::span<const Command> describe_commands();
std::span<const Command> cluster_commands();

class CommandTable {
 public:
  CommandTable();

  // Null: there is none. In any case of letters.
  const Command* find(std::string_view name) const;
  // One of a command's own; `name` without the command's.
  static const Command* find_subcommand(const Command& command, std::string_view name);
  // In the order of their names.
  std::span<const Command* const> all() const { return commands_; }
  size_t size() const { return commands_.size(); }
  // The place of a command, or of the one it belongs to, in all().
  size_t index_of(const Command& command) const;

 private:
  std::vector<const Command*> commands_;
};

}  // namespace cairn::door::resp
