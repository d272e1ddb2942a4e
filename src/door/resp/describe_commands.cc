// SPDX-License-Identifier: Apache-2.0
// COMMAND: what commands there are, as clients and their users ask for it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/glob.h"
#include "door/resp/help.h"

namespace cairn::door::resp {

namespace {

using FlagName = std::pair<uint32_t, std::string_view>;
constexpr std::array kFlagNames = {
    FlagName{kWrites, "write"},        FlagName{kReads, "readonly"},
    FlagName{kGrows, "denyoom"},       FlagName{kAdmin, "admin"},
    FlagName{kFast, "fast"},           FlagName{kWithoutPassword, "no_auth"},
    FlagName{kNotInMulti, "no_multi"},
};

std::vector<std::string_view> flag_names(const Command& command) {
  std::vector<std::string_view> names;
  for (const auto& [flag, name] : kFlagNames) {
    if (command.is(flag)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> categories(const Command& command) {
  std::vector<std::string> names;
  if (command.is(kWrites)) names.emplace_back("@write");
  if (command.is(kReads)) names.emplace_back("@read");
  if (command.group == "generic") names.emplace_back("@keyspace");
  if (command.group == "string" || command.group == "bitmap" || command.group == "connection") {
    names.push_back(fmt::format("@{}", command.group));
  }
  if (command.group == "transactions") names.emplace_back("@transaction");
  if (command.is(kAdmin)) names.insert(names.end(), {"@admin", "@dangerous"});
  names.emplace_back(command.is(kFast) ? "@fast" : "@slow");
  return names;
}

bool is_in_category(const Command& command, std::string_view category) {
  const std::vector<std::string> names = categories(command);
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return name.substr(1) == category; });
}

// Where its keys are, in the form of Redis 7: begin at a word, go on by steps.
void tell_key_positions(Reply& reply, const Command& command) {
  const KeyPositions& keys = command.keys;
  if (keys.first == 0) return reply.set(0);
  reply.set(1);
  reply.map(3);
  reply.bulk("flags");
  reply.set(2);
  reply.status(command.is(kWrites) ? "RW" : "RO");
  reply.status(command.is(kWrites) ? "UPDATE" : "ACCESS");
  reply.bulk("begin_search");
  reply.map(2);
  reply.bulk("type");
  reply.bulk("index");
  reply.bulk("spec");
  reply.map(1);
  reply.bulk("index");
  reply.integer(keys.first);
  reply.bulk("find_keys");
  reply.map(2);
  reply.bulk("type");
  reply.bulk("range");
  reply.bulk("spec");
  reply.map(3);
  reply.bulk("lastkey");
  reply.integer(keys.last < 0 ? keys.last : keys.last - keys.first);
  reply.bulk("keystep");
  reply.integer(keys.step);
  reply.bulk("limit");
  reply.integer(0);
}

void tell(Reply& reply, const Command& command) {
  reply.array(10);
  reply.bulk(command.name);
  reply.integer(command.arity);
  const std::vector<std::string_view> flags = flag_names(command);
  reply.set(flags.size());
  for (const std::string_view flag : flags) reply.status(flag);
  reply.integer(command.keys.first);
  reply.integer(command.keys.last);
  reply.integer(command.keys.step);
  const std::vector<std::string> names = categories(command);
  reply.set(names.size());
  for (const std::string& name : names) reply.status(name);
  reply.set(0);  // tips
  tell_key_positions(reply, command);
  reply.array(command.subcommands.size());
  for (const Command& each : command.subcommands) tell(reply, each);
}

void tell_docs(Reply& reply, const Command& command) {
  const bool has_more = !command.subcommands.empty();
  reply.bulk(command.name);
  reply.map(has_more ? 4 : 3);
  reply.bulk("summary");
  reply.bulk(command.summary);
  reply.bulk("since");
  reply.bulk(command.since);
  reply.bulk("group");
  reply.bulk(command.group);
  if (!has_more) return;
  reply.bulk("subcommands");
  reply.map(command.subcommands.size());
  for (const Command& each : command.subcommands) tell_docs(reply, each);
}

// "object" or "object|encoding"; null: there is none.
const Command* find(const CommandTable& table, std::string_view name) {
  const size_t bar = name.find('|');
  const Command* const command = table.find(name.substr(0, bar));
  if (command == nullptr || bar == std::string_view::npos) return command;
  return CommandTable::find_subcommand(*command, name.substr(bar + 1));
}

void tell_all(Call& call) {
  call.reply.array(call.door.commands.size());
  for (const Command* each : call.door.commands.all()) tell(call.reply, *each);
}

void command(Call& call) { tell_all(call); }

void count(Call& call) { call.reply.integer(static_cast<int64_t>(call.door.commands.size())); }

void info(Call& call) {
  if (call.args.size() == 2) return tell_all(call);
  call.reply.array(call.args.size() - 2);
  for (const std::string_view name : call.args.subspan(2)) {
    const Command* const found = find(call.door.commands, name);
    if (found != nullptr) {
      tell(call.reply, *found);
    } else {
      call.reply.null();
    }
  }
}

void docs(Call& call) {
  std::vector<const Command*> found;
  for (const std::string_view name : call.args.subspan(2)) {
    if (const Command* const each = find(call.door.commands, name); each != nullptr) {
      found.push_back(each);
    }
  }
  if (call.args.size() == 2) {
    found.assign(call.door.commands.all().begin(), call.door.commands.all().end());
  }
  call.reply.map(found.size());
  for (const Command* each : found) tell_docs(call.reply, *each);
}

void list(Call& call) {
  const Args args = call.args;
  const bool has_filter = args.size() == 5 && is_word(args[2], "filterby");
  if (args.size() != 2 && !has_filter) return call.reply.error(kSyntaxError);
  const bool is_known = has_filter && (is_word(args[3], "pattern") || is_word(args[3], "module") ||
                                       is_word(args[3], "aclcat"));
  if (has_filter && !is_known) return call.reply.error(kSyntaxError);
  std::vector<std::string_view> names;
  for (const Command* each : call.door.commands.all()) {
    if (has_filter && is_word(args[3], "pattern") && !matches(args[4], each->name, true)) continue;
    if (has_filter && is_word(args[3], "module")) continue;
    if (has_filter && is_word(args[3], "aclcat") && !is_in_category(*each, args[4])) {
      continue;
    }
    names.push_back(each->name);
  }
  call.reply.array(names.size());
  for (const std::string_view name : names) call.reply.bulk(name);
}

void getkeys(Call& call) {
  const Args args = call.args.subspan(2);
  const Command* found = call.door.commands.find(args[0]);
  if (found != nullptr && !found->subcommands.empty() && args.size() > 1) {
    found = CommandTable::find_subcommand(*found, args[1]);
  }
  if (found == nullptr) return call.reply.error("ERR Invalid command specified");
  if (found->keys.first == 0) {
    return call.reply.error("ERR The command has no key arguments");
  }
  if (!found->takes(args.size())) {
    return call.reply.error("ERR Invalid number of arguments specified for command");
  }
  std::vector<std::string_view> keys;
  for_each_key(*found, args, [&](std::string_view key) { keys.push_back(key); });
  call.reply.array(keys.size());
  for (const std::string_view key : keys) call.reply.bulk(key);
}

constexpr Command sub(std::string_view name, int arity, std::string_view since,
                      std::string_view summary, void (*run)(Call&)) {
  return {.name = name,
          .arity = arity,
          .flags = 0,
          .keys = {},
          .group = "server",
          .since = since,
          .summary = summary,
          .plain = run};
}

constexpr std::array kCommand = {
    sub("command|count", 2, "2.8.13", "Get total number of Redis commands", count),
    sub("command|docs", -2, "7.0.0", "Get array of specific Redis command documentation", docs),
    sub("command|getkeys", -4, "2.8.13", "Extract keys given a full Redis command", getkeys),
    sub("command|help", 2, "5.0.0", "Show helpful text about the different subcommands", help),
    sub("command|info", -2, "2.8.13", "Get array of specific Redis command details", info),
    sub("command|list", -2, "7.0.0", "Get an array of Redis command names", list),
};

constexpr std::array kCommands = {
    Command{.name = "command",
            .arity = -1,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "2.8.13",
            .summary = "Get array of Redis command details",
            .plain = command,
            .subcommands = kCommand},
};

}  // namespace

std::span<const Command> describe_commands() { return kCommands; }

}  // namespace cairn::door::resp
