// SPDX-License-Identifier: Apache-2.0
// Keys, whatever their values are.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "door/resp/command_table.h"
#include "door/resp/help.h"
#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

using Needs = kv::Change::Needs;

// Redis keeps a short string together with its header.
constexpr size_t kEmbeddedMax = 44;

void del(Call& call, View& view) {
  int64_t erased = 0;
  for (const std::string_view key : call.args.subspan(1)) {
    if (view.find(key) == nullptr) continue;
    view.erase(key);
    ++erased;
  }
  call.reply.integer(erased);
}

void exists(Call& call, View& view) {
  int64_t found = 0;
  for (const std::string_view key : call.args.subspan(1)) found += view.find(key) != nullptr;
  call.reply.integer(found);
}

void type(Call& call, View& view) {
  call.reply.status(view.find(call.args[1]) != nullptr ? "string" : "none");
}

// The value moves with its end. False, and an error in the reply: there is none.
bool rename_to(Call& call, View& view, bool only_new) {
  const kv::Entry* const entry = view.find(call.args[1]);
  if (entry == nullptr) {
    call.reply.error("ERR no such key");
    return false;
  }
  const bool is_taken = view.find(call.args[2]) != nullptr;
  if (only_new) call.reply.integer(is_taken ? 0 : 1);
  if ((only_new && is_taken) || call.args[1] == call.args[2]) return true;
  std::string value = entry->value;
  const std::optional<WallTime> expires = entry->meta.expires;
  view.erase(call.args[1]);
  view.put(call.args[2], std::move(value), expires);
  return true;
}

void rename(Call& call, View& view) {
  if (rename_to(call, view, false)) call.reply.ok();
}

void renamenx(Call& call, View& view) { rename_to(call, view, true); }

void copy(Call& call, View& view) {
  bool replaces = false;
  for (size_t i = 3; i < call.args.size(); ++i) {
    if (is_word(call.args[i], "replace")) {
      replaces = true;
    } else if (is_word(call.args[i], "db") && i + 1 < call.args.size()) {
      const std::optional<int64_t> database = integer_word(call, call.args[++i]);
      if (!database) return;
      if (*database != 0) return call.reply.error("ERR DB index is out of range");
    } else {
      return call.reply.error(kSyntaxError);
    }
  }
  if (call.args[1] == call.args[2]) {
    return call.reply.error("ERR source and destination objects are the same");
  }
  const kv::Entry* const entry = view.find(call.args[1]);
  const bool copies = entry != nullptr && (replaces || view.find(call.args[2]) == nullptr);
  if (copies) {
    std::string value = entry->value;
    view.put(call.args[2], std::move(value), entry->meta.expires);
  }
  call.reply.integer(copies ? 1 : 0);
}

// Null, and an error in the reply, where there is no such key; OBJECT answers so.
const kv::Entry* find_object(Call& call, View& view) {
  const kv::Entry* const entry = view.find(call.args[2]);
  if (entry == nullptr) call.reply.null();
  return entry;
}

void object_encoding(Call& call, View& view) {
  const kv::Entry* const entry = find_object(call, view);
  if (entry == nullptr) return;
  const bool is_number = parse_integer(entry->value).has_value();
  const bool is_short = entry->value.size() <= kEmbeddedMax;
  call.reply.bulk(is_number ? "int" : is_short ? "embstr" : "raw");
}

void object_refcount(Call& call, View& view) {
  if (find_object(call, view) != nullptr) call.reply.integer(1);
}

void object_idletime(Call& call, View& view) {
  if (find_object(call, view) != nullptr) call.reply.integer(0);
}

void object_freq(Call& call, View& view) {
  if (find_object(call, view) == nullptr) return;
  call.reply.error(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

void memory_usage(Call& call, View& view) {
  const Args args = call.args;
  const bool has_samples = args.size() == 5 && is_word(args[3], "samples");
  if (args.size() != 3 && !has_samples) return call.reply.error(kSyntaxError);
  if (has_samples && !integer_word(call, args[4])) return;
  const kv::Entry* const entry = view.find(args[2]);
  if (entry == nullptr) return call.reply.null();
  call.reply.integer(static_cast<int64_t>(args[2].size() + entry->meta.size));
}

constexpr KeyPositions kTwoKeys{.first = 1, .last = 2, .step = 1};
constexpr KeyPositions kSecond{.first = 2, .last = 2, .step = 1};

constexpr std::array kObject = {
    Command{.name = "object|encoding",
            .arity = 3,
            .flags = kReads,
            .keys = kSecond,
            .group = "generic",
            .since = "2.2.3",
            .summary = "Inspect the internal encoding of a Redis object",
            .data = object_encoding},
    Command{.name = "object|freq",
            .arity = 3,
            .flags = kReads,
            .keys = kSecond,
            .group = "generic",
            .since = "4.0.0",
            .summary = "Get the logarithmic access frequency counter of a Redis object",
            .data = object_freq,
            .needs = Needs::kMeta},
    Command{.name = "object|help",
            .arity = 2,
            .flags = 0,
            .keys = {},
            .group = "generic",
            .since = "6.2.0",
            .summary = "Show helpful text about the different subcommands",
            .plain = help},
    Command{.name = "object|idletime",
            .arity = 3,
            .flags = kReads,
            .keys = kSecond,
            .group = "generic",
            .since = "2.2.3",
            .summary = "Get the time since a Redis object was last accessed",
            .data = object_idletime,
            .needs = Needs::kMeta},
    Command{.name = "object|refcount",
            .arity = 3,
            .flags = kReads,
            .keys = kSecond,
            .group = "generic",
            .since = "2.2.3",
            .summary = "Get the number of references to the value of the key",
            .data = object_refcount,
            .needs = Needs::kMeta},
};

constexpr std::array kMemory = {
    Command{.name = "memory|help",
            .arity = 2,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "4.0.0",
            .summary = "Show helpful text about the different subcommands",
            .plain = help},
    Command{.name = "memory|usage",
            .arity = -3,
            .flags = kReads,
            .keys = kSecond,
            .group = "server",
            .since = "4.0.0",
            .summary = "Estimate the memory usage of a key",
            .data = memory_usage,
            .needs = Needs::kMeta},
};

constexpr std::array kCommands = {
    Command{.name = "del",
            .arity = -2,
            .flags = kWrites | kSumOfKeys,
            .keys = kAllKeys,
            .group = "generic",
            .since = "1.0.0",
            .summary = "Delete a key",
            .data = del,
            .needs = Needs::kMeta},
    Command{.name = "unlink",
            .arity = -2,
            .flags = kWrites | kFast | kSumOfKeys,
            .keys = kAllKeys,
            .group = "generic",
            .since = "4.0.0",
            .summary = "Delete a key asynchronously in another thread",
            .data = del,
            .needs = Needs::kMeta},
    Command{.name = "exists",
            .arity = -2,
            .flags = kReads | kFast | kSumOfKeys,
            .keys = kAllKeys,
            .group = "generic",
            .since = "1.0.0",
            .summary = "Determine if a key exists",
            .data = exists,
            .needs = Needs::kMeta},
    Command{.name = "touch",
            .arity = -2,
            .flags = kReads | kFast | kSumOfKeys,
            .keys = kAllKeys,
            .group = "generic",
            .since = "3.2.1",
            .summary = "Alters the last access time of a key(s)",
            .data = exists,
            .needs = Needs::kMeta},
    Command{.name = "type",
            .arity = 2,
            .flags = kReads | kFast,
            .keys = kOneKey,
            .group = "generic",
            .since = "1.0.0",
            .summary = "Determine the type stored at key",
            .data = type,
            .needs = Needs::kMeta},
    Command{.name = "rename",
            .arity = 3,
            .flags = kWrites,
            .keys = kTwoKeys,
            .group = "generic",
            .since = "1.0.0",
            .summary = "Rename a key",
            .data = rename},
    Command{.name = "renamenx",
            .arity = 3,
            .flags = kWrites | kFast,
            .keys = kTwoKeys,
            .group = "generic",
            .since = "1.0.0",
            .summary = "Rename a key, only if the new key does not exist",
            .data = renamenx},
    Command{.name = "copy",
            .arity = -3,
            .flags = kWrites | kGrows,
            .keys = kTwoKeys,
            .group = "generic",
            .since = "6.2.0",
            .summary = "Copy a key",
            .data = copy},
    Command{.name = "object",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "generic",
            .since = "2.2.3",
            .summary = "A container for object introspection commands",
            .subcommands = kObject},
    Command{.name = "memory",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "server",
            .since = "4.0.0",
            .summary = "A container for memory diagnostics commands",
            .subcommands = kMemory},
};

}  // namespace

std::span<const Command> key_commands() { return kCommands; }

}  // namespace cairn::door::resp
