// SPDX-License-Identifier: Apache-2.0
#include "door/resp/help.h"

#include <fmt/format.h>

#include <cctype>
#include <string>

#include "base/check.h"
#include "door/resp/door_state.h"

namespace cairn::door::resp {

namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

void help(Call& call) {
  const size_t prefix = call.command.name.find('|');
  const Command* const container = call.door.commands.find(call.command.name.substr(0, prefix));
  CHECK(container != nullptr, "a subcommand has a command above it");
  call.reply.array(1 + 2 * container->subcommands.size());
  call.reply.status(fmt::format("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                                upper(container->name)));
  for (const Command& each : container->subcommands) {
    call.reply.status(upper(each.name.substr(prefix + 1)));
    call.reply.status(fmt::format("    {}.", each.summary));
  }
}

}  // namespace cairn::door::resp
