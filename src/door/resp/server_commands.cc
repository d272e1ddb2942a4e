// SPDX-License-Identifier: Apache-2.0
// The door itself: INFO, TIME, DEBUG and what clients ask of every Redis.
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "door/resp/cluster.h"
#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/help.h"
#include "door/resp/info.h"
#include "door/resp/number.h"
#include "task/deadline.h"

namespace cairn::door::resp {

namespace {

constexpr long double kSleepMax = 3600;

void info(Call& call) { call.reply.verbatim("txt", info_text(call.door, call.args.subspan(1))); }

void metrics(Call& call) { call.reply.verbatim("txt", metrics_text(call.door)); }

void time(Call& call) {
  const int64_t us = call.door.env.wall_now().ns / 1000;
  call.reply.array(2);
  call.reply.bulk(std::to_string(us / 1'000'000));
  call.reply.bulk(std::to_string(us % 1'000'000));
}

void role(Call& call) {
  call.reply.array(3);
  call.reply.bulk("master");
  call.reply.integer(0);
  call.reply.array(0);
}

void ok(Call& call) { call.reply.ok(); }

void none(Call& call) { call.reply.array(0); }

task::Task<void> debug_sleep(Call& call) {
  const std::optional<long double> seconds = parse_real(call.args[2]);
  if (!seconds || *seconds < 0 || *seconds > kSleepMax) {
    call.reply.error("ERR a time of 0 to 3600 seconds");
    co_return;
  }
  const Duration time = Duration::from_seconds(static_cast<double>(*seconds));
  const Result<void> slept = co_await task::sleep_for(call.door.env, time, call.client.end.token());
  if (slept) {
    call.reply.ok();
  } else {
    call.reply.error("ERR the connection ends");
  }
}

void three_bulks(Reply& reply) {
  for (int i = 0; i < 3; ++i) reply.integer(i);
}

void three_pairs(Reply& reply) {
  for (int i = 0; i < 3; ++i) {
    reply.integer(i);
    reply.boolean(i == 1);
  }
}

// One reply of each type, for those who write clients.
void debug_protocol(Call& call) {
  Reply& reply = call.reply;
  const std::string_view type = call.args[2];
  if (is_word(type, "string")) return reply.bulk("Hello World");
  if (is_word(type, "integer")) return reply.integer(12345);
  if (is_word(type, "double")) return reply.real("3.141");
  if (is_word(type, "null")) return reply.null();
  if (is_word(type, "true")) return reply.boolean(true);
  if (is_word(type, "false")) return reply.boolean(false);
  if (is_word(type, "bignum")) {
    return reply.big_number("1234567999999999999999999999999999999");
  }
  if (is_word(type, "verbatim")) return reply.verbatim("txt", "This is a verbatim\nstring");
  if (is_word(type, "array")) {
    reply.array(3);
  } else if (is_word(type, "set")) {
    reply.set(3);
  } else if (is_word(type, "map")) {
    reply.map(3);
    return three_pairs(reply);
  } else {
    return reply.error(
        "ERR Wrong protocol type name. Please use one of the following: string|integer|double|"
        "null|array|set|map|verbatim|bignum|true|false");
  }
  three_bulks(reply);
}

constexpr std::array kDebug = {
    Command{.name = "debug|help",
            .arity = 2,
            .flags = kAdmin,
            .keys = {},
            .group = "server",
            .since = "1.0.0",
            .summary = "Show helpful text about the different subcommands",
            .plain = help},
    Command{.name = "debug|jmap",
            .arity = 2,
            .flags = kAdmin,
            .keys = {},
            .group = "server",
            .since = "1.0.0",
            .summary = "Nothing: there is no other end of memory to map",
            .plain = ok},
    Command{.name = "debug|protocol",
            .arity = 3,
            .flags = kAdmin,
            .keys = {},
            .group = "server",
            .since = "6.0.0",
            .summary = "Reply with a value of the given type",
            .plain = debug_protocol},
    Command{.name = "debug|set-active-expire",
            .arity = 3,
            .flags = kAdmin,
            .keys = {},
            .group = "server",
            .since = "2.6.0",
            .summary = "Nothing: keys that have expired are never seen",
            .plain = ok},
    Command{.name = "debug|sleep",
            .arity = 3,
            .flags = kAdmin,
            .keys = {},
            .group = "server",
            .since = "1.0.0",
            .summary = "Have this client wait, and no other",
            .async = debug_sleep},
};

constexpr std::array kFunction = {
    Command{.name = "function|flush",
            .arity = -2,
            .flags = kWrites,
            .keys = {},
            .group = "scripting",
            .since = "7.0.0",
            .summary = "Deleting all functions: there are none",
            .plain = ok},
    Command{.name = "function|list",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "scripting",
            .since = "7.0.0",
            .summary = "List information about all the functions",
            .plain = none},
};

constexpr std::array kCairn = {
    Command{.name = "cairn|help",
            .arity = 2,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "7.0.0",
            .summary = "Show helpful text about the different subcommands",
            .plain = help},
    Command{.name = "cairn|metrics",
            .arity = 2,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "7.0.0",
            .summary = "All counters, for Prometheus",
            .plain = metrics},
};

constexpr std::array kCommands = {
    Command{.name = "info",
            .arity = -1,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "1.0.0",
            .summary = "Get information and statistics about the server",
            .plain = info},
    Command{.name = "time",
            .arity = 1,
            .flags = kFast,
            .keys = {},
            .group = "server",
            .since = "2.6.0",
            .summary = "Return the current server time",
            .plain = time},
    Command{.name = "role",
            .arity = 1,
            .flags = kAdmin | kFast,
            .keys = {},
            .group = "server",
            .since = "2.8.12",
            .summary = "Return the role of the instance",
            .plain = role},
    Command{.name = "wait",
            .arity = 3,
            .flags = 0,
            .keys = {},
            .group = "generic",
            .since = "3.0.0",
            .summary = "Wait until so many replicas have what this connection wrote",
            .async = wait_for_replicas},
    Command{.name = "debug",
            .arity = -2,
            .flags = kAdmin,
            .keys = {},
            .group = "server",
            .since = "1.0.0",
            .summary = "A container for debugging commands",
            .subcommands = kDebug},
    Command{.name = "function",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "scripting",
            .since = "7.0.0",
            .summary = "A container for function commands",
            .subcommands = kFunction},
    Command{.name = "cairn",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "7.0.0",
            .summary = "A container for commands that Redis does not have",
            .subcommands = kCairn},
};

}  // namespace

std::span<const Command> server_commands() { return kCommands; }

}  // namespace cairn::door::resp
