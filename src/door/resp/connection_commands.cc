// SPDX-License-Identifier: Apache-2.0
// A client and its connection: PING, HELLO, AUTH, SELECT, QUIT.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/secret.h"
#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/identity.h"
#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

constexpr std::string_view kUser = "default";

void ping(Call& call) {
  if (call.args.size() > 2) {
    return call.reply.error("ERR wrong number of arguments for 'ping' command");
  }
  if (call.args.size() == 2) return call.reply.bulk(call.args[1]);
  call.reply.status("PONG");
}

void echo(Call& call) { call.reply.bulk(call.args[1]); }

// False, and an error in the reply: it is not the password.
bool log_in(Call& call, std::string_view user, std::string_view password) {
  const auto& known = call.door.options.password;
  const bool is_right =
      user == kUser &&
      (!known || crypto::is_equal(known->bytes(), digest_of_password(password).bytes()));
  if (is_right) {
    call.client.is_authenticated = true;
  } else {
    call.reply.error("WRONGPASS invalid username-password pair or user is disabled.");
  }
  return is_right;
}

void auth(Call& call) {
  if (call.args.size() > 3) return call.reply.error(kSyntaxError);
  const bool has_user = call.args.size() == 3;
  if (!has_user && !call.door.options.password) {
    return call.reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are "
        "you sure your configuration is correct?");
  }
  if (log_in(call, has_user ? call.args[1] : kUser, call.args.back())) call.reply.ok();
}

void tell_hello(Call& call) {
  call.reply.protocol = call.client.protocol;
  call.reply.map(7);
  call.reply.bulk("server");
  call.reply.bulk("redis");
  call.reply.bulk("version");
  call.reply.bulk(kRedisVersion);
  call.reply.bulk("proto");
  call.reply.integer(call.client.protocol);
  call.reply.bulk("id");
  call.reply.integer(static_cast<int64_t>(call.client.id));
  call.reply.bulk("mode");
  call.reply.bulk(call.door.options.cluster ? "cluster" : "standalone");
  call.reply.bulk("role");
  call.reply.bulk("master");
  call.reply.bulk("modules");
  call.reply.array(0);
}

// The options of HELLO. False, and an error in the reply: they make no sense, or are wrong.
bool take_hello_options(Call& call, std::optional<std::string_view>& name) {
  const Args args = call.args;
  for (size_t i = 2; i < args.size(); ++i) {
    if (is_word(args[i], "auth") && i + 2 < args.size()) {
      if (!log_in(call, args[i + 1], args[i + 2])) return false;
      i += 2;
    } else if (is_word(args[i], "setname") && i + 1 < args.size()) {
      name = args[++i];
      if (!is_client_name(call, *name)) return false;
    } else {
      call.reply.error(fmt::format("ERR Syntax error in HELLO option '{}'", args[i]));
      return false;
    }
  }
  return true;
}

void hello(Call& call) {
  int protocol = call.client.protocol;
  if (call.args.size() > 1) {
    const std::optional<int64_t> version = parse_integer(call.args[1]);
    if (!version) {
      return call.reply.error("ERR Protocol version is not an integer or out of range");
    }
    if (*version != 2 && *version != 3) {
      return call.reply.error("NOPROTO unsupported protocol version");
    }
    protocol = static_cast<int>(*version);
  }
  std::optional<std::string_view> name;
  if (!take_hello_options(call, name)) return;
  if (!call.client.is_authenticated) {
    return call.reply.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  if (name) call.client.name = *name;
  call.client.protocol = protocol;
  tell_hello(call);
}

void select(Call& call) {
  const std::optional<int64_t> database = integer_word(call, call.args[1]);
  if (!database) return;
  if (*database != 0) return call.reply.error("ERR DB index is out of range");
  call.reply.ok();
}

void quit(Call& call) {
  call.client.is_leaving = true;
  call.reply.ok();
}

void reset(Call& call) {
  ClientState& client = call.client;
  client.transaction = {};
  client.name.clear();
  client.protocol = call.reply.protocol = 2;
  client.is_authenticated = !call.door.options.password;
  client.is_exempt = false;
  client.replies = ClientState::Replies::kOn;
  call.reply.status("RESET");
}

void acl_whoami(Call& call) { call.reply.bulk(kUser); }

void acl_users(Call& call) {
  call.reply.array(1);
  call.reply.bulk(kUser);
}

void acl_list(Call& call) {
  call.reply.array(1);
  call.reply.bulk(fmt::format("user default on {} ~* &* +@all",
                              call.door.options.password ? "sanitize-payload" : "nopass"));
}

constexpr uint32_t kAlways = kFast | kWithoutPassword;

constexpr std::array kAcl = {
    Command{.name = "acl|list",
            .arity = 2,
            .flags = kAdmin,
            .keys = {},
            .group = "server",
            .since = "6.0.0",
            .summary = "List the current ACL rules in ACL config file format",
            .plain = acl_list},
    Command{.name = "acl|users",
            .arity = 2,
            .flags = kAdmin,
            .keys = {},
            .group = "server",
            .since = "6.0.0",
            .summary = "List the username of all the configured ACL rules",
            .plain = acl_users},
    Command{.name = "acl|whoami",
            .arity = 2,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "6.0.0",
            .summary = "Return the name of the user associated to the current connection",
            .plain = acl_whoami},
};

constexpr std::array kCommands = {
    Command{.name = "ping",
            .arity = -1,
            .flags = kFast,
            .keys = {},
            .group = "connection",
            .since = "1.0.0",
            .summary = "Ping the server",
            .plain = ping},
    Command{.name = "echo",
            .arity = 2,
            .flags = kFast,
            .keys = {},
            .group = "connection",
            .since = "1.0.0",
            .summary = "Echo the given string",
            .plain = echo},
    Command{.name = "auth",
            .arity = -2,
            .flags = kAlways,
            .keys = {},
            .group = "connection",
            .since = "1.0.0",
            .summary = "Authenticate to the server",
            .plain = auth},
    Command{.name = "hello",
            .arity = -1,
            .flags = kAlways,
            .keys = {},
            .group = "connection",
            .since = "6.0.0",
            .summary = "Handshake with Redis",
            .plain = hello},
    Command{.name = "select",
            .arity = 2,
            .flags = kFast,
            .keys = {},
            .group = "connection",
            .since = "1.0.0",
            .summary = "Change the selected database for the current connection",
            .plain = select},
    Command{.name = "quit",
            .arity = -1,
            .flags = kAlways | kNeverQueued,
            .keys = {},
            .group = "connection",
            .since = "1.0.0",
            .summary = "Close the connection",
            .plain = quit},
    Command{.name = "reset",
            .arity = 1,
            .flags = kAlways | kNeverQueued,
            .keys = {},
            .group = "connection",
            .since = "6.2.0",
            .summary = "Reset the connection",
            .plain = reset},
    Command{.name = "acl",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "6.0.0",
            .summary = "A container for Access List Control commands",
            .subcommands = kAcl},
};

}  // namespace

std::span<const Command> connection_commands() { return kCommands; }

}  // namespace cairn::door::resp
