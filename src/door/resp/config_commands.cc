// SPDX-License-Identifier: Apache-2.0
// CONFIG: parameters while the door is open.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/glob.h"
#include "door/resp/help.h"

namespace cairn::door::resp {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Under the name that was asked for, in its case, or under their own where that is a pattern.
void get(Call& call) {
  std::map<std::string_view, std::string_view> found;
  for (const std::string_view pattern : call.args.subspan(2)) {
    const bool is_pattern = pattern.find_first_of("[*?") != std::string_view::npos;
    for (const Config::Parameter& each : call.door.config.all()) {
      if (!matches(pattern, each.name, true)) continue;
      found.emplace(is_pattern ? each.name : pattern, each.value);
    }
  }
  call.reply.map(found.size());
  for (const auto& [name, value] : found) {
    call.reply.bulk(name);
    call.reply.bulk(value);
  }
}

std::string failed(std::string_view name, std::string_view why) {
  return fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}", name, why);
}

// All parameters or none: a copy is changed, and takes the old one's place.
void set(Call& call) {
  if (call.args.size() % 2 != 0) return call.reply.error(kSyntaxError);
  Config changed = call.door.config;
  std::vector<std::string> names;
  for (size_t i = 2; i < call.args.size(); i += 2) {
    std::string name = lower(call.args[i]);
    if (!changed.has(name)) {
      return call.reply.error(fmt::format(
          "ERR Unknown option or number of arguments for CONFIG SET - '{}'", call.args[i]));
    }
    if (std::ranges::find(names, name) != names.end()) {
      return call.reply.error(failed(name, "duplicate parameter"));
    }
    const std::string why = changed.set(name, call.args[i + 1]);
    if (!why.empty()) return call.reply.error(failed(name, why));
    names.push_back(std::move(name));
  }
  call.door.config = std::move(changed);
  call.reply.ok();
}

void resetstat(Call& call) {
  call.door.stats = {};
  std::ranges::fill(call.door.calls, 0);
  call.reply.ok();
}

void rewrite(Call& call) { call.reply.error("ERR The server is running without a config file"); }

constexpr Command sub(std::string_view name, int arity, std::string_view summary,
                      void (*run)(Call&)) {
  return {.name = name,
          .arity = arity,
          .flags = kAdmin,
          .keys = {},
          .group = "server",
          .since = "2.0.0",
          .summary = summary,
          .plain = run};
}

constexpr std::array kConfig = {
    sub("config|get", -3, "Get the values of configuration parameters", get),
    sub("config|help", 2, "Show helpful text about the different subcommands", help),
    sub("config|resetstat", 2, "Reset the stats returned by INFO", resetstat),
    sub("config|rewrite", 2, "Rewrite the configuration file with the in memory configuration",
        rewrite),
    sub("config|set", -4, "Set configuration parameters to the given values", set),
};

constexpr std::array kCommands = {
    Command{.name = "config",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "2.0.0",
            .summary = "A container for server configuration commands",
            .subcommands = kConfig},
};

}  // namespace

std::span<const Command> config_commands() { return kCommands; }

}  // namespace cairn::door::resp
