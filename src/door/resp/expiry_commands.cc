// SPDX-License-Identifier: Apache-2.0
// When keys end: EXPIRE, TTL and their kin.
#include <array>
#include <optional>
#include <string>

#include "door/resp/command_table.h"
#include "door/resp/expiry.h"

namespace cairn::door::resp {

namespace {

using Needs = kv::Change::Needs;

// Conditions on the end that a key has; a key without one never ends.
struct Conditions {
  bool only_without = false;  // NX
  bool only_with = false;     // XX
  bool only_later = false;    // GT
  bool only_earlier = false;  // LT
};

// None, and an error in the reply: they make no sense.
std::optional<Conditions> conditions(Call& call) {
  Conditions found;
  for (const std::string_view word : call.args.subspan(3)) {
    if (is_word(word, "nx")) {
      found.only_without = true;
    } else if (is_word(word, "xx")) {
      found.only_with = true;
    } else if (is_word(word, "gt")) {
      found.only_later = true;
    } else if (is_word(word, "lt")) {
      found.only_earlier = true;
    } else {
      call.reply.error("ERR Unsupported option " + std::string(word));
      return std::nullopt;
    }
  }
  if (found.only_without && (found.only_with || found.only_later || found.only_earlier)) {
    call.reply.error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return std::nullopt;
  }
  if (found.only_later && found.only_earlier) {
    call.reply.error("ERR GT and LT options at the same time are not compatible");
    return std::nullopt;
  }
  return found;
}

bool allows(const Conditions& conditions, std::optional<WallTime> old, WallTime end) {
  if (conditions.only_without && old) return false;
  if (conditions.only_with && !old) return false;
  if (conditions.only_later && (!old || end <= *old)) return false;
  return !(conditions.only_earlier && old && end >= *old);
}

void expire_as(Call& call, View& view, ExpiryForm form) {
  const std::optional<Conditions> when = conditions(call);
  if (!when) return;
  const std::optional<WallTime> end = expiry_word(call, call.args[2], form, false);
  if (!end) return;
  const kv::Entry* const entry = view.find(call.args[1]);
  if (entry == nullptr || !allows(*when, entry->meta.expires, *end)) return call.reply.integer(0);
  std::string value = entry->value;
  view.put(call.args[1], std::move(value), *end);
  call.reply.integer(1);
}

void expire(Call& call, View& view) {
  expire_as(call, view, {.is_in_seconds = true, .is_absolute = false});
}

void pexpire(Call& call, View& view) {
  expire_as(call, view, {.is_in_seconds = false, .is_absolute = false});
}

void expireat(Call& call, View& view) {
  expire_as(call, view, {.is_in_seconds = true, .is_absolute = true});
}

void pexpireat(Call& call, View& view) {
  expire_as(call, view, {.is_in_seconds = false, .is_absolute = true});
}

// -2: there is no such key; -1: it does not end.
void tell_end(Call& call, View& view, ExpiryForm form) {
  const kv::Entry* const entry = view.find(call.args[1]);
  if (entry == nullptr) return call.reply.integer(-2);
  if (!entry->meta.expires) return call.reply.integer(-1);
  int64_t ms = ms_of(*entry->meta.expires);
  if (!form.is_absolute) ms = std::max<int64_t>(ms - ms_of(call.now), 0);
  call.reply.integer(form.is_in_seconds ? (ms + 500) / 1000 : ms);
}

void ttl(Call& call, View& view) {
  tell_end(call, view, {.is_in_seconds = true, .is_absolute = false});
}

void pttl(Call& call, View& view) {
  tell_end(call, view, {.is_in_seconds = false, .is_absolute = false});
}

void expiretime(Call& call, View& view) {
  tell_end(call, view, {.is_in_seconds = true, .is_absolute = true});
}

void pexpiretime(Call& call, View& view) {
  tell_end(call, view, {.is_in_seconds = false, .is_absolute = true});
}

void persist(Call& call, View& view) {
  const kv::Entry* const entry = view.find(call.args[1]);
  if (entry == nullptr || !entry->meta.expires) return call.reply.integer(0);
  std::string value = entry->value;
  view.put(call.args[1], std::move(value), std::nullopt);
  call.reply.integer(1);
}

constexpr std::array kCommands = {
    Command{.name = "expire",
            .arity = -3,
            .flags = kWrites | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "1.0.0",
            .summary = "Set a key's time to live in seconds",
            .data = expire},
    Command{.name = "pexpire",
            .arity = -3,
            .flags = kWrites | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "2.6.0",
            .summary = "Set a key's time to live in milliseconds",
            .data = pexpire},
    Command{.name = "expireat",
            .arity = -3,
            .flags = kWrites | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "1.2.0",
            .summary = "Set the expiration for a key as a UNIX timestamp",
            .data = expireat},
    Command{.name = "pexpireat",
            .arity = -3,
            .flags = kWrites | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "2.6.0",
            .summary = "Set the expiration for a key as a UNIX timestamp in milliseconds",
            .data = pexpireat},
    Command{.name = "ttl",
            .arity = 2,
            .flags = kReads | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "1.0.0",
            .summary = "Get the time to live for a key in seconds",
            .data = ttl,
            .needs = Needs::kMeta},
    Command{.name = "pttl",
            .arity = 2,
            .flags = kReads | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "2.6.0",
            .summary = "Get the time to live for a key in milliseconds",
            .data = pttl,
            .needs = Needs::kMeta},
    Command{.name = "expiretime",
            .arity = 2,
            .flags = kReads | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "7.0.0",
            .summary = "Get the expiration Unix timestamp for a key",
            .data = expiretime,
            .needs = Needs::kMeta},
    Command{.name = "pexpiretime",
            .arity = 2,
            .flags = kReads | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "7.0.0",
            .summary = "Get the expiration Unix timestamp for a key in milliseconds",
            .data = pexpiretime,
            .needs = Needs::kMeta},
    Command{.name = "persist",
            .arity = 2,
            .flags = kWrites | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "2.2.0",
            .summary = "Remove the expiration from a key",
            .data = persist},
};

}  // namespace

std::span<const Command> expiry_commands() { return kCommands; }

}  // namespace cairn::door::resp
