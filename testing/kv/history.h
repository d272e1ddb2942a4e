// SPDX-License-Identifier: Apache-2.0
// History: what clients asked of keys and were told, and whether a store that does one thing at a
// time could have said so (linearizability).
//
// Each key is judged alone, which is enough (a history is linearizable if that of each object is).
// The search is that of Wing and Gong with Lowe's memory of what was tried. An operation whose end
// nobody knows may have happened at any time after its beginning, or never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cairn::kv {

// Strings are values as clients see them; versions are those that the store gives out.
struct KeyOp {
  enum class Kind : uint8_t {
    kGet,      // -> value, version; none: no such key
    kPut,      // value -> version
    kDelete,   // -> done: the key was there
    kPutNew,   // value -> done: the key was not there before
    kAdd,      // amount -> number; a key that is not there counts as 0
    kReplace,  // value, if the key has `expected` as version -> done
  };
  Kind kind = Kind::kGet;
  uint64_t client = 0;  // for people
  std::string value;    // put, or seen by a get
  int64_t amount = 0;   // added
  uint64_t expected = 0;

  int64_t began = 0;
  std::optional<int64_t> ended;  // none: it is not known whether it happened
  // What was said, if it ended.
  bool done = false;       // of a get: the key was there
  bool was_error = false;  // of kAdd: the value is no number, nothing happened
  int64_t number = 0;
  uint64_t version = 0;  // of what was read or written; 0: was not told
};

struct HistoryVerdict {
  enum class Kind : uint8_t { kGood, kBad, kTooHard };
  Kind kind = Kind::kGood;
  std::string key;   // of one that is not good
  std::string text;  // what could not be explained, and what was around it
  uint64_t steps = 0;
};

struct CheckOptions {
  // The store promises that each change of a key gets a larger version than those before. That is
  // then judged too, and leaves little to search.
  bool versions_grow = false;
  uint64_t steps_max = 20'000'000;  // for a key; then kTooHard, which says nothing of it
};

class History {
 public:
  // The operations of a key in any order; their times are of one clock.
  void add(std::string key, KeyOp op) { keys_[std::move(key)].push_back(std::move(op)); }
  size_t size() const;
  // Operations whose end is known.
  size_t ended() const;
  const std::map<std::string, std::vector<KeyOp>>& keys() const { return keys_; }

  HistoryVerdict check(const CheckOptions& options = {}) const;

 private:
  std::map<std::string, std::vector<KeyOp>> keys_;
};

}  // namespace cairn::kv
