// SPDX-License-Identifier: Apache-2.0
// Command: one word of the protocol, what it may be given, and what it does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/units.h"
#include "door/resp/reply.h"
#include "door/resp/view.h"
#include "kv/keyspace.h"
#include "task/task.h"

namespace cairn::door::resp {

struct ClientState;
struct Command;
struct DoorState;

using Args = std::span<const std::string_view>;

// A command on its way. Everything is borrowed for the call.
struct Call {
  DoorState& door;
  ClientState& client;
  const Command& command;
  Args args;  // as many as the command's arity allows; the first is its name
  Reply& reply;
  WallTime now;
};

enum CommandFlag : uint32_t {
  kWrites = 1U << 0,
  kReads = 1U << 1,
  kGrows = 1U << 2,  // may need more space
  kFast = 1U << 3,
  kAdmin = 1U << 4,
  kWithoutPassword = 1U << 5,
  kNotInMulti = 1U << 6,
  kNeverQueued = 1U << 7,  // runs at once in the middle of MULTI
  kBlocks = 1U << 8,
  // What a cluster does with several keys: one after the other, as if each had been named alone...
  kKeyByKey = 1U << 9,
  // ... and the reply is the sum of the numbers that are the replies for each.
  kSumOfKeys = 1U << 10,
};

// Which of a command's words are keys: from `first` to `last` (-1: the last word), each `step`.
struct KeyPositions {
  int first = 0;  // 0: none
  int last = 0;
  int step = 0;
};

inline constexpr KeyPositions kOneKey{.first = 1, .last = 1, .step = 1};
inline constexpr KeyPositions kAllKeys{.first = 1, .last = -1, .step = 1};

// Has exactly one of `data`, `plain` and `async`, or subcommands, or both.
struct Command {
  std::string_view name;  // "object|encoding" of a subcommand
  int arity = 0;          // words, with the name; -n: n or more
  uint32_t flags = 0;
  KeyPositions keys;
  std::string_view group;
  std::string_view since;  // the version of Redis that had it first
  std::string_view summary;

  // Works on the values of its keys, and waits for nothing.
  void (*data)(Call&, View&) = nullptr;
  kv::Change::Needs needs = kv::Change::Needs::kValues;
  kv::Change::Needs (*needs_of)(Args) = nullptr;  // where the words decide that
  // Waits for nothing, and looks at no key.
  void (*plain)(Call&) = nullptr;
  task::Task<void> (*async)(Call&) = nullptr;
  std::span<const Command> subcommands;

  bool is(uint32_t flag) const { return (flags & flag) != 0; }
  bool takes(size_t args) const {
    return arity >= 0 ? args == static_cast<size_t>(arity) : args >= static_cast<size_t>(-arity);
  }
};

// Calls `visit(key)` for each key among a command's words.
template <class F>
void for_each_key(const Command& command, Args args, F&& visit) {
  if (command.keys.first == 0) return;
  const int count = static_cast<int>(args.size());
  const int last = command.keys.last < 0 ? count + command.keys.last : command.keys.last;
  for (int i = command.keys.first; i <= last && i < count; i += command.keys.step) {
    visit(args[static_cast<size_t>(i)]);
  }
}
void add_keys(const Command& command, Args args, KeySet& keys);
// What of its keys it has to see.
kv::Change::Needs needs_of(const Command& command, Args args);

// Whether a word is `lower`, which has small letters only.
bool is_word(std::string_view word, std::string_view lower);

inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kNoInteger = "ERR value is not an integer or out of range";

// The number that a word is; none, and an error in the reply: it is no number.
std::optional<int64_t> integer_word(Call& call, std::string_view word);

}  // namespace cairn::door::resp
