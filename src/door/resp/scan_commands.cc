// SPDX-License-Identifier: Apache-2.0
// The keyspace as a whole: SCAN, KEYS, RANDOMKEY, DBSIZE, FLUSHALL.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/execute.h"
#include "door/resp/glob.h"
#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

constexpr size_t kScanDefault = 10;
// One answer of SCAN has at most about so many keys, whatever was asked for, and so many bytes.
constexpr size_t kScanKeysMax = 10'000;
constexpr size_t kScanBytesMax = 1 << 20;
// At once, while all keys are looked through.
constexpr size_t kPageKeys = 512;
// What KEYS may collect.
constexpr size_t kKeysBytesMax = 256 << 20;

struct ScanOptions {
  size_t count = kScanDefault;
  std::string_view pattern = "*";
  bool has_none = false;  // of the type that is asked for
};

// None, and an error in the reply: they make no sense.
std::optional<ScanOptions> scan_options(Call& call) {
  ScanOptions options;
  for (size_t i = 2; i < call.args.size(); i += 2) {
    const std::string_view word = call.args[i];
    const bool has_value = i + 1 < call.args.size();
    if (is_word(word, "count") && has_value) {
      const std::optional<int64_t> count = integer_word(call, call.args[i + 1]);
      if (!count) return std::nullopt;
      if (*count < 1) {
        call.reply.error(kSyntaxError);
        return std::nullopt;
      }
      options.count = std::min<size_t>(static_cast<size_t>(*count), kScanKeysMax);
    } else if (is_word(word, "match") && has_value) {
      options.pattern = call.args[i + 1];
    } else if (is_word(word, "type") && has_value) {
      options.has_none = !is_word(call.args[i + 1], "string");
    } else {
      call.reply.error(kSyntaxError);
      return std::nullopt;
    }
  }
  return options;
}

task::Task<void> scan(Call& call) {
  const std::optional<uint64_t> cursor = parse_unsigned(call.args[1]);
  if (!cursor) {
    call.reply.error("ERR invalid cursor");
    co_return;
  }
  const std::optional<ScanOptions> options = scan_options(call);
  if (!options) co_return;
  std::vector<std::string> found;
  uint64_t next = *cursor;
  size_t seen = 0;
  size_t bytes = 0;
  do {
    const size_t count = std::min(options->count - seen, kPageKeys);
    Result<kv::ScanPage> page = co_await call.door.keys.scan(next, count);
    if (!page) {
      call.reply.error(keyspace_error(page.error()));
      co_return;
    }
    // A page without keys has taken its time too.
    seen += std::max<size_t>(page->keys.size(), 1);
    next = page->next;
    for (std::string& key : page->keys) {
      if (options->has_none || !matches(options->pattern, key)) continue;
      bytes += key.size();
      found.push_back(std::move(key));
    }
  } while (next != 0 && seen < options->count && bytes < kScanBytesMax);
  call.reply.array(2);
  call.reply.bulk(std::to_string(next));
  call.reply.array(found.size());
  for (const std::string& key : found) call.reply.bulk(key);
}

task::Task<void> keys(Call& call) {
  std::vector<std::string> found;
  uint64_t cursor = 0;
  size_t bytes = 0;
  do {
    Result<kv::ScanPage> page = co_await call.door.keys.scan(cursor, kPageKeys);
    if (!page) {
      call.reply.error(keyspace_error(page.error()));
      co_return;
    }
    if (page->unreadable > 0) {
      call.reply.error(
          "ERR some records are damaged so that their keys are not known: SCAN tells "
          "the others");
      co_return;
    }
    cursor = page->next;
    for (std::string& key : page->keys) {
      if (!matches(call.args[1], key)) continue;
      bytes += key.size() + sizeof(std::string);
      found.push_back(std::move(key));
    }
  } while (cursor != 0 && bytes < kKeysBytesMax && !call.client.end.requested());
  if (cursor != 0) {
    call.reply.error("ERR too many keys match for one reply: use SCAN");
    co_return;
  }
  // A scan may tell a key twice.
  std::ranges::sort(found);
  const auto rest = std::ranges::unique(found);
  found.erase(rest.begin(), rest.end());
  call.reply.array(found.size());
  for (const std::string& key : found) call.reply.bulk(key);
}

task::Task<void> randomkey(Call& call) {
  const Result<std::optional<std::string>> key = co_await call.door.keys.random_key();
  if (!key) {
    call.reply.error(keyspace_error(key.error()));
  } else if (*key) {
    call.reply.bulk(**key);
  } else {
    call.reply.null();
  }
}

// Async, so that it counts what the commands before it in a transaction have changed.
task::Task<void> dbsize(Call& call) {
  const Result<uint64_t> count = co_await call.door.keys.count();
  if (count) {
    call.reply.integer(static_cast<int64_t>(*count));
  } else {
    call.reply.error(keyspace_error(count.error()));
  }
}

task::Task<void> flush(Call& call) {
  const Args args = call.args;
  const bool is_wrong = args.size() > 2 || (args.size() == 2 && !is_word(args[1], "async") &&
                                            !is_word(args[1], "sync"));
  if (is_wrong) {
    call.reply.error(kSyntaxError);
    co_return;
  }
  const Result<void> cleared = co_await call.door.keys.clear();
  if (cleared) {
    call.reply.ok();
  } else {
    call.reply.error(keyspace_error(cleared.error()));
  }
}

constexpr std::array kCommands = {
    Command{.name = "scan",
            .arity = -2,
            .flags = kReads,
            .keys = {},
            .group = "generic",
            .since = "2.8.0",
            .summary = "Incrementally iterate the keys space",
            .async = scan},
    Command{.name = "keys",
            .arity = 2,
            .flags = kReads,
            .keys = {},
            .group = "generic",
            .since = "1.0.0",
            .summary = "Find all keys matching the given pattern",
            .async = keys},
    Command{.name = "randomkey",
            .arity = 1,
            .flags = kReads,
            .keys = {},
            .group = "generic",
            .since = "1.0.0",
            .summary = "Return a random key from the keyspace",
            .async = randomkey},
    Command{.name = "dbsize",
            .arity = 1,
            .flags = kReads | kFast,
            .keys = {},
            .group = "server",
            .since = "1.0.0",
            .summary = "Return the number of keys in the selected database",
            .async = dbsize},
    Command{.name = "flushall",
            .arity = -1,
            .flags = kWrites,
            .keys = {},
            .group = "server",
            .since = "1.0.0",
            .summary = "Remove all keys from all databases",
            .async = flush},
    Command{.name = "flushdb",
            .arity = -1,
            .flags = kWrites,
            .keys = {},
            .group = "server",
            .since = "1.0.0",
            .summary = "Remove all keys from the current database",
            .async = flush},
};

}  // namespace

std::span<const Command> scan_commands() { return kCommands; }

}  // namespace cairn::door::resp
