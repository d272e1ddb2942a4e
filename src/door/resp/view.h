// SPDX-License-Identifier: Apache-2.0
// View: some keys as one command or one transaction sees and changes them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "kv/keyspace.h"

namespace cairn::door::resp {

// The keys of a command, each once. The words are borrowed.
class KeySet {
 public:
  void add(std::string_view key) { keys_.push_back(key); }
  // No key is added any more.
  void seal();
  std::span<const std::string_view> keys() const { return keys_; }
  // It is one of them.
  size_t index_of(std::string_view key) const;

 private:
  std::vector<std::string_view> keys_;
};

// When it ends, where it is there and does.
inline std::optional<WallTime> end_of(const kv::Entry* entry) {
  return entry != nullptr ? entry->meta.expires : std::nullopt;
}

// What is there, and over it what the commands of a transaction have changed so far. Borrows all.
class View {
 public:
  View(const KeySet& keys, std::span<const std::optional<kv::Entry>> found, WallTime now);

  // Null: there is no such key. Valid until the key is changed. Whether the value is there, only
  // the meta, or nothing, is what was asked for.
  const kv::Entry* find(std::string_view key) const;
  // A key whose end is not later than now is erased.
  void put(std::string_view key, std::string value, std::optional<WallTime> expires);
  void erase(std::string_view key);

  // What has become of the keys.
  void commit(std::span<kv::Edit> edits);

 private:
  struct Changed {
    kv::Edit::Kind kind = kv::Edit::Kind::kKeep;
    kv::Entry entry;
  };

  Changed& changed(std::string_view key);

  const KeySet& keys_;
  std::span<const std::optional<kv::Entry>> found_;
  WallTime now_;
  std::vector<Changed> changed_;  // empty, or as many as there are keys
};

}  // namespace cairn::door::resp
