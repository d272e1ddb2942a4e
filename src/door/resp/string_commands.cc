// SPDX-License-Identifier: Apache-2.0
// Values as a whole: GET, SET and their kin.
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "door/resp/command_table.h"
#include "door/resp/execute.h"
#include "door/resp/expiry.h"

namespace cairn::door::resp {

namespace {

using Needs = kv::Change::Needs;

void reply_value(Call& call, const kv::Entry* entry) {
  if (entry == nullptr) return call.reply.null();
  call.reply.bulk(entry->value);
}

void get(Call& call, View& view) { reply_value(call, view.find(call.args[1])); }

// A key that is named many times has its value in the reply as often.
void mget(Call& call, View& view) {
  uint64_t together = 0;
  for (const std::string_view key : call.args.subspan(1)) {
    const kv::Entry* const entry = view.find(key);
    together += entry != nullptr ? entry->value.size() : 0;
  }
  if (together > kReplyBytesMax) return call.reply.error(std::string("ERR ") + kTooMuchTogether);
  call.reply.array(call.args.size() - 1);
  for (const std::string_view key : call.args.subspan(1)) reply_value(call, view.find(key));
}

// The options of SET; at most one of each pair that excludes another.
struct SetOptions {
  bool only_new = false;
  bool only_old = false;
  bool gives_old = false;
  bool keeps_end = false;
  std::optional<ExpiryForm> form;
  std::string_view end;  // where there is a form
};

std::optional<SetOptions> set_options(Args args) {
  SetOptions options;
  for (size_t i = 3; i < args.size(); ++i) {
    const std::string_view word = args[i];
    const std::optional<ExpiryForm> form = expiry_form(word);
    if (is_word(word, "nx") && !options.only_old) {
      options.only_new = true;
    } else if (is_word(word, "xx") && !options.only_new) {
      options.only_old = true;
    } else if (is_word(word, "get")) {
      options.gives_old = true;
    } else if (is_word(word, "keepttl") && !options.form) {
      options.keeps_end = true;
    } else if (form && !options.form && !options.keeps_end && i + 1 < args.size()) {
      options.form = form;
      options.end = args[++i];
    } else {
      return std::nullopt;
    }
  }
  return options;
}

Needs set_needs(Args args) {
  const std::optional<SetOptions> options = set_options(args);
  if (!options) return Needs::kNothing;
  if (options->gives_old) return Needs::kValues;
  const bool looks = options->only_new || options->only_old || options->keeps_end;
  return looks ? Needs::kMeta : Needs::kNothing;
}

void set(Call& call, View& view) {
  const std::optional<SetOptions> options = set_options(call.args);
  if (!options) return call.reply.error(kSyntaxError);
  const std::string_view key = call.args[1];
  std::optional<WallTime> expires;
  if (options->form) {
    expires = expiry_word(call, options->end, *options->form, true);
    if (!expires) return;
  }
  const kv::Entry* const old = view.find(key);
  const bool goes_on =
      !(options->only_new && old != nullptr) && !(options->only_old && old == nullptr);
  if (options->gives_old) {
    reply_value(call, old);
  } else if (goes_on) {
    call.reply.ok();
  } else {
    call.reply.null();
  }
  if (!goes_on) return;
  if (options->keeps_end) expires = end_of(old);
  view.put(key, std::string(call.args[2]), expires);
}

void setnx(Call& call, View& view) {
  const bool is_new = view.find(call.args[1]) == nullptr;
  if (is_new) view.put(call.args[1], std::string(call.args[2]), std::nullopt);
  call.reply.integer(is_new ? 1 : 0);
}

void set_with_end(Call& call, View& view, ExpiryForm form) {
  const std::optional<WallTime> expires = expiry_word(call, call.args[2], form, true);
  if (!expires) return;
  view.put(call.args[1], std::string(call.args[3]), expires);
  call.reply.ok();
}

void setex(Call& call, View& view) { set_with_end(call, view, {.is_in_seconds = true}); }

void psetex(Call& call, View& view) { set_with_end(call, view, {.is_in_seconds = false}); }

void getset(Call& call, View& view) {
  reply_value(call, view.find(call.args[1]));
  view.put(call.args[1], std::string(call.args[2]), std::nullopt);
}

void getdel(Call& call, View& view) {
  const kv::Entry* const entry = view.find(call.args[1]);
  reply_value(call, entry);
  if (entry != nullptr) view.erase(call.args[1]);
}

void getex(Call& call, View& view) {
  const Args args = call.args;
  const bool persists = args.size() == 3 && is_word(args[2], "persist");
  const std::optional<ExpiryForm> form =
      args.size() == 4 ? expiry_form(args[2]) : std::optional<ExpiryForm>();
  if (args.size() != 2 && !persists && !form) return call.reply.error(kSyntaxError);
  const kv::Entry* const entry = view.find(args[1]);
  std::optional<WallTime> expires;
  if (form && entry != nullptr) {
    expires = expiry_word(call, args[3], *form, true);
    if (!expires) return;
  }
  reply_value(call, entry);
  if (entry == nullptr || args.size() == 2 || (persists && !entry->meta.expires)) return;
  std::string value = entry->value;
  view.put(args[1], std::move(value), expires);
}

bool has_pairs(Call& call) {
  if (call.args.size() % 2 == 1) return true;
  call.reply.error("ERR wrong number of arguments for '" + std::string(call.command.name) +
                   "' command");
  return false;
}

void put_pairs(Call& call, View& view) {
  for (size_t i = 1; i < call.args.size(); i += 2) {
    view.put(call.args[i], std::string(call.args[i + 1]), std::nullopt);
  }
}

void mset(Call& call, View& view) {
  if (!has_pairs(call)) return;
  put_pairs(call, view);
  call.reply.ok();
}

void msetnx(Call& call, View& view) {
  if (!has_pairs(call)) return;
  for (size_t i = 1; i < call.args.size(); i += 2) {
    if (view.find(call.args[i]) != nullptr) return call.reply.integer(0);
  }
  put_pairs(call, view);
  call.reply.integer(1);
}

constexpr KeyPositions kPairs{.first = 1, .last = -1, .step = 2};

constexpr std::array kCommands = {
    Command{.name = "get",
            .arity = 2,
            .flags = kReads | kFast,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Get the value of a key",
            .data = get},
    Command{.name = "mget",
            .arity = -2,
            .flags = kReads | kFast | kKeyByKey,
            .keys = kAllKeys,
            .group = "string",
            .since = "1.0.0",
            .summary = "Get the values of all the given keys",
            .data = mget},
    Command{.name = "set",
            .arity = -3,
            .flags = kWrites | kGrows,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Set the string value of a key",
            .data = set,
            .needs_of = set_needs},
    Command{.name = "setnx",
            .arity = 3,
            .flags = kWrites | kGrows | kFast,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Set the value of a key, only if the key does not exist",
            .data = setnx,
            .needs = Needs::kMeta},
    Command{.name = "setex",
            .arity = 4,
            .flags = kWrites | kGrows,
            .keys = kOneKey,
            .group = "string",
            .since = "2.0.0",
            .summary = "Set the value and expiration of a key",
            .data = setex,
            .needs = Needs::kNothing},
    Command{.name = "psetex",
            .arity = 4,
            .flags = kWrites | kGrows,
            .keys = kOneKey,
            .group = "string",
            .since = "2.6.0",
            .summary = "Set the value and expiration in milliseconds of a key",
            .data = psetex,
            .needs = Needs::kNothing},
    Command{.name = "getset",
            .arity = 3,
            .flags = kWrites | kGrows | kFast,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Set the string value of a key and return its old value",
            .data = getset},
    Command{.name = "getdel",
            .arity = 2,
            .flags = kWrites | kFast,
            .keys = kOneKey,
            .group = "string",
            .since = "6.2.0",
            .summary = "Get the value of a key and delete the key",
            .data = getdel},
    Command{.name = "getex",
            .arity = -2,
            .flags = kWrites | kFast,
            .keys = kOneKey,
            .group = "string",
            .since = "6.2.0",
            .summary = "Get the value of a key and optionally set its expiration",
            .data = getex},
    Command{.name = "mset",
            .arity = -3,
            .flags = kWrites | kGrows | kKeyByKey,
            .keys = kPairs,
            .group = "string",
            .since = "1.0.1",
            .summary = "Set multiple keys to multiple values",
            .data = mset,
            .needs = Needs::kNothing},
    Command{.name = "msetnx",
            .arity = -3,
            .flags = kWrites | kGrows,
            .keys = kPairs,
            .group = "string",
            .since = "1.0.1",
            .summary = "Set multiple keys to multiple values, only if none of the keys exist",
            .data = msetnx,
            .needs = Needs::kMeta},
};

}  // namespace

std::span<const Command> string_commands() { return kCommands; }

}  // namespace cairn::door::resp
