// SPDX-License-Identifier: Apache-2.0
// CLIENT: who is connected.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/help.h"
#include "door/resp/identity.h"
#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

constexpr std::string_view kOtherType = "pubsub";

int64_t seconds_since(DoorState& door, Time then) {
  return (door.env.now() - then).ns / 1'000'000'000;
}

std::string describe(DoorState& door, const ClientState& client) {
  const Transaction& transaction = client.transaction;
  return fmt::format(
      "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={} db=0 sub=0 psub=0 ssub=0 "
      "multi={} qbuf={} qbuf-free=0 argv-mem=0 multi-mem={} rbs=0 rbp=0 obl=0 oll=0 omem={} "
      "tot-mem={} events=r cmd={} user=default redir=-1 resp={}\n",
      client.id, client.address, client.local_address, client.name,
      seconds_since(door, client.since), seconds_since(door, client.last_used),
      transaction.is_open ? "x" : "N",
      transaction.is_open ? static_cast<int64_t>(transaction.queue.size()) : -1,
      client.request_bytes, transaction.bytes, client.reply_bytes,
      client.bytes + sizeof(ClientState), client.last_command, client.protocol);
}

// Which clients are meant; those that are not said are all.
struct Filter {
  std::vector<uint64_t> ids;
  std::optional<std::string_view> address;
  std::optional<std::string_view> local_address;
  bool has_none = false;  // of the type or the user
  bool skips_me = true;

  bool has(const ClientState& client) const {
    if (has_none) return false;
    if (!ids.empty() && std::ranges::find(ids, client.id) == ids.end()) return false;
    if (address && client.address != *address) return false;
    return !local_address || client.local_address == *local_address;
  }
};

// None, and an error in the reply: no such type.
std::optional<bool> is_normal_type(Call& call, std::string_view type) {
  if (is_word(type, "normal")) return true;
  for (const std::string_view other : {std::string_view("master"), std::string_view("replica"),
                                       std::string_view("slave"), kOtherType}) {
    if (is_word(type, other)) return false;
  }
  call.reply.error(fmt::format("ERR Unknown client type '{}'", type));
  return std::nullopt;
}

void id(Call& call) { call.reply.integer(static_cast<int64_t>(call.client.id)); }

void info(Call& call) { call.reply.verbatim("txt", describe(call.door, call.client)); }

void getname(Call& call) {
  if (call.client.name.empty()) return call.reply.null();
  call.reply.bulk(call.client.name);
}

void setname(Call& call) {
  if (!is_client_name(call, call.args[2])) return;
  call.client.name = call.args[2];
  call.reply.ok();
}

void list(Call& call) {
  const Args args = call.args;
  Filter filter;
  if (args.size() == 4 && is_word(args[2], "type")) {
    const std::optional<bool> is_normal = is_normal_type(call, args[3]);
    if (!is_normal) return;
    filter.has_none = !*is_normal;
  } else if (args.size() > 3 && is_word(args[2], "id")) {
    for (const std::string_view word : args.subspan(3)) {
      const std::optional<int64_t> id = parse_integer(word);
      if (!id || *id < 1) return call.reply.error("ERR Invalid client ID");
      filter.ids.push_back(static_cast<uint64_t>(*id));
    }
  } else if (args.size() != 2) {
    return call.reply.error(kSyntaxError);
  }
  std::string text;
  call.door.clients.for_each([&](const ClientState& client) {
    if (filter.has(client)) text += describe(call.door, client);
  });
  call.reply.verbatim("txt", text);
}

// One filter of CLIENT KILL and its value. False, and an error in the reply: it makes no sense.
bool add_filter(Call& call, std::string_view word, std::string_view value, Filter& filter) {
  if (is_word(word, "id")) {
    const std::optional<int64_t> id = parse_integer(value);
    if (!id || *id < 1) {
      call.reply.error("ERR client-id should be greater than 0");
      return false;
    }
    filter.ids.assign(1, static_cast<uint64_t>(*id));
  } else if (is_word(word, "type")) {
    const std::optional<bool> is_normal = is_normal_type(call, value);
    if (!is_normal) return false;
    filter.has_none |= !*is_normal;
  } else if (is_word(word, "addr")) {
    filter.address = value;
  } else if (is_word(word, "laddr")) {
    filter.local_address = value;
  } else if (is_word(word, "user")) {
    if (value != "default") {
      call.reply.error(fmt::format("ERR No such user '{}'", value));
      return false;
    }
  } else if (is_word(word, "skipme") && (is_word(value, "yes") || is_word(value, "no"))) {
    filter.skips_me = is_word(value, "yes");
  } else {
    call.reply.error(kSyntaxError);
    return false;
  }
  return true;
}

// Ends those who are meant; oneself when the reply was sent.
int64_t kill_all(Call& call, const Filter& filter) {
  int64_t killed = 0;
  call.door.clients.for_each([&](ClientState& client) {
    const bool is_me = &client == &call.client;
    if (!filter.has(client) || (is_me && filter.skips_me)) return;
    ++killed;
    if (is_me) {
      client.is_leaving = true;
    } else {
      client.end.request();
    }
  });
  return killed;
}

void kill(Call& call) {
  const Args args = call.args;
  Filter filter;
  if (args.size() == 3) {
    filter.address = args[2];
    filter.skips_me = false;
    if (kill_all(call, filter) == 0) return call.reply.error("ERR No such client");
    return call.reply.ok();
  }
  if (args.size() % 2 != 0) return call.reply.error(kSyntaxError);
  for (size_t i = 2; i < args.size(); i += 2) {
    if (!add_filter(call, args[i], args[i + 1], filter)) return;
  }
  call.reply.integer(kill_all(call, filter));
}

void reply(Call& call) {
  using Replies = ClientState::Replies;
  if (is_word(call.args[2], "on")) {
    call.client.replies = Replies::kOn;
    call.reply.ok();
  } else if (is_word(call.args[2], "off")) {
    call.client.replies = Replies::kOff;
  } else if (is_word(call.args[2], "skip")) {
    if (call.client.replies == Replies::kOn) call.client.replies = Replies::kSkipNext;
  } else {
    call.reply.error(kSyntaxError);
  }
}

void no_evict(Call& call) {
  if (!is_word(call.args[2], "on") && !is_word(call.args[2], "off")) {
    return call.reply.error(kSyntaxError);
  }
  call.client.is_exempt = is_word(call.args[2], "on");
  call.reply.ok();
}

void getredir(Call& call) { call.reply.integer(-1); }

void unblock(Call& call) {
  if (!integer_word(call, call.args[2])) return;
  call.reply.integer(0);
}

constexpr Command sub(std::string_view name, int arity, uint32_t flags, std::string_view since,
                      std::string_view summary, void (*run)(Call&)) {
  return {.name = name,
          .arity = arity,
          .flags = flags,
          .keys = {},
          .group = "connection",
          .since = since,
          .summary = summary,
          .plain = run};
}

constexpr std::array kClient = {
    sub("client|getname", 2, 0, "2.6.9", "Get the current connection name", getname),
    sub("client|getredir", 2, 0, "6.0.0", "Get tracking notifications redirection client ID if any",
        getredir),
    sub("client|help", 2, 0, "5.0.0", "Show helpful text about the different subcommands", help),
    sub("client|id", 2, 0, "5.0.0", "Returns the client ID for the current connection", id),
    sub("client|info", 2, 0, "6.2.0", "Returns information about the current client connection.",
        info),
    sub("client|kill", -3, kAdmin, "2.4.0", "Kill the connection of a client", kill),
    sub("client|list", -2, kAdmin, "2.4.0", "Get the list of client connections", list),
    sub("client|no-evict", 3, kAdmin, "7.0.0",
        "Set client eviction mode for the current connection", no_evict),
    sub("client|reply", 3, 0, "3.2.0", "Instruct the server whether to reply to commands", reply),
    sub("client|setname", 3, 0, "2.6.9", "Set the current connection name", setname),
    sub("client|unblock", -3, kAdmin, "5.0.0",
        "Unblock a client blocked in a blocking command from a different connection", unblock),
};

constexpr std::array kCommands = {
    Command{.name = "client",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "connection",
            .since = "2.4.0",
            .summary = "A container for client connection commands",
            .subcommands = kClient},
};

}  // namespace

bool is_client_name(Call& call, std::string_view name) {
  if (std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; })) return true;
  call.reply.error("ERR Client names cannot contain spaces, newlines or special characters.");
  return false;
}

std::span<const Command> client_commands() { return kCommands; }

}  // namespace cairn::door::resp
