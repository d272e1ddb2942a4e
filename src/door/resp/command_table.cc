// SPDX-License-Identifier: Apache-2.0
#include "door/resp/command_table.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace cairn::door::resp {

namespace {

constexpr size_t kNameMax = 32;

// Of a container, also for one of its subcommands.
std::string_view own_name(const Command& command) {
  return command.name.substr(0, command.name.find('|'));
}

// A name as the table has it, in `room`; empty: it is longer than any.
std::string_view lowered(std::string_view name, std::array<char, kNameMax>& room) {
  if (name.size() > room.size()) return {};
  std::ranges::transform(name, room.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return {room.data(), name.size()};
}

}  // namespace

CommandTable::CommandTable() {
  for (const auto list :
       {string_commands(), number_commands(), range_commands(), key_commands(), expiry_commands(),
        scan_commands(), transaction_commands(), connection_commands(), client_commands(),
        server_commands(), config_commands(), describe_commands(), cluster_commands()}) {
    for (const Command& command : list) commands_.push_back(&command);
  }
  std::ranges::sort(commands_, {}, [](const Command* command) { return command->name; });
}

const Command* CommandTable::find(std::string_view name) const {
  std::array<char, kNameMax> room;
  name = lowered(name, room);
  const auto at = std::ranges::lower_bound(commands_, name, {},
                                           [](const Command* command) { return command->name; });
  return at != commands_.end() && (*at)->name == name ? *at : nullptr;
}

const Command* CommandTable::find_subcommand(const Command& command, std::string_view name) {
  for (const Command& each : command.subcommands) {
    if (is_word(name, each.name.substr(command.name.size() + 1))) return &each;
  }
  return nullptr;
}

size_t CommandTable::index_of(const Command& command) const {
  const auto at = std::ranges::lower_bound(commands_, own_name(command), {},
                                           [](const Command* each) { return each->name; });
  CHECK(at != commands_.end() && (*at)->name == own_name(command));
  return static_cast<size_t>(at - commands_.begin());
}

}  // namespace cairn::door::resp
