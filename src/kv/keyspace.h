// SPDX-License-Identifier: Apache-2.0
// Keyspace: keys, values and their ends, as a door for key-value clients sees them; whoever keeps
// them, in memory or on a drive, implements it. Contract: docs/kv.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "task/task.h"

namespace cairn::kv {

inline constexpr size_t kKeyBytesMax = 64UL * 1024;  // and at least 1
inline constexpr size_t kValueBytesMax = 16UL * 1024 * 1024;

// What is known of a key without its value. A key whose end has come does not exist any more.
struct Meta {
  uint64_t version = 0;  // another one after every change of the key, never used again
  uint64_t size = 0;     // of the value, in bytes
  std::optional<WallTime> expires;
};

struct Entry {
  Meta meta;
  std::string value;  // empty where only the meta was asked for
};

// What becomes of one key. `expires` holds for kPut alone: none means that it does not expire. It
// may be rounded up to the next whole millisecond.
struct Edit {
  enum class Kind : uint8_t { kKeep, kPut, kErase };
  Kind kind = Kind::kKeep;
  std::string value;
  std::optional<WallTime> expires;
};

// A change of one key or of several, as a function of what they are. Lives until transact() is
// done.
class Change {
 public:
  enum class Needs : uint8_t { kNothing, kMeta, kValues };
  explicit Change(Needs needs) : needs(needs) {}
  virtual ~Change() = default;

  // Called while nobody else changes these keys; waits for nothing. What a keyspace of several
  // nodes finds changed after all is decided again: of several calls the last one holds. `now` are
  // as many as there are keys (none: there is no such key; for kNothing all none), and so are
  // `edits`, all kKeep. An error changes nothing, and is what transact() returns.
  virtual Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) = 0;

  const Needs needs;
};

struct ScanPage {
  uint64_t next = 0;  // where to go on; 0: this was the last page
  std::vector<std::string> keys;
  // So many records, or parts with several, are damaged so that their keys cannot be told. All
  // others are told; a damaged record whose key can be told is one of them.
  size_t unreadable = 0;
};

// Used on one core. Any number of calls at once; a call sees whatever was acknowledged before it
// began. Errors: kInvalid (a key or value is too long, or a key empty), kNoSpace (the drive is
// full: reads and erasing go on), kCorrupt (a record is damaged), kCancelled, and those of drives.
class Keyspace {
 public:
  virtual ~Keyspace() = default;

  // None: there is no such key.
  virtual task::Task<Result<std::optional<Entry>>> get(std::string_view key) = 0;
  virtual task::Task<Result<std::optional<Meta>>> look(std::string_view key) = 0;

  // All edits or none, also over a crash; durable on success, unless the keyspace was opened in a
  // mode that says otherwise. `keys` differ from each other, and are lent until it is done.
  virtual task::Task<Result<void>> transact(std::span<const std::string_view> keys,
                                            Change& change) = 0;

  // Some keys from `cursor` (0: the start), about `count` of them, perhaps none. A key that is
  // there during a whole run from 0 to 0 is told at least once.
  virtual task::Task<Result<ScanPage>> scan(uint64_t cursor, size_t count) = 0;
  // Any key that is there; none: there are none.
  virtual task::Task<Result<std::optional<std::string>>> random_key() = 0;
  virtual task::Task<Result<void>> clear() = 0;

  // How many keys are there now.
  virtual task::Task<Result<uint64_t>> count() { co_return size(); }
  // Keys that are there; those whose end has come may be counted for a while.
  virtual uint64_t size() const = 0;
};

}  // namespace cairn::kv
