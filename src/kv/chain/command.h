// SPDX-License-Identifier: Apache-2.0
// Command: what a client asks of a key, and what becomes of the key's record: pure functions.
//
// The head of a chain decides a command against the newest record it has, published or not. The
// record remembers the last request of each of some clients, so that one that comes twice is
// answered as it was at first. Others only put the record that came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cairn::kv::chain {

inline constexpr size_t kRememberedMax = 32;  // clients whose last request a record remembers
inline constexpr size_t kChainValueMax = 1UL << 20;
inline constexpr size_t kChainKeyMax = 32UL << 10;

// When a key ends, in milliseconds since 1970, may be none.
inline constexpr int64_t kNoEnd = INT64_MAX;

struct Command {
  enum class Kind : uint8_t {
    kPut,      // value
    kErase,    // done: the key was there
    kPutNew,   // value, if the key is not there
    kAdd,      // amount to the decimal number that the value is; a missing key counts as 0
    kReplace,  // value, if the key has that version
    kSwap,     // value, if its newest record has that version; 0: if there is none. For those who
               // decided by what they read, of a key that is not there too
    kSwapErase,
  };
  Kind kind = Kind::kPut;
  std::string value;
  int64_t amount = 0;
  uint64_t version = 0;
  int64_t expires_ms = kNoEnd;  // of what is put; kAdd leaves it as it is
  friend bool operator==(const Command&, const Command&) = default;
};

struct Outcome {
  bool done = false;          // the key was changed
  bool is_no_number = false;  // kAdd: the value is none, or the sum too large
  int64_t number = 0;         // kAdd: the sum
  uint64_t version = 0;       // that the change made
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Of a client, in the order of their numbers. At a key it has one under way at most.
struct RequestId {
  uint64_t client = 0;
  uint64_t number = 0;
  friend bool operator==(const RequestId&, const RequestId&) = default;
};

struct Remembered {
  RequestId id;
  Outcome outcome;
  friend bool operator==(const Remembered&, const Remembered&) = default;
};

// A key as nodes keep it and pass it on.
struct Record {
  uint64_t version = 0;  // grows with every change of the key
  bool is_erased = false;
  int64_t expires_ms = kNoEnd;
  uint64_t forgotten = 0;  // the largest version whose request is not remembered any more
  std::vector<Remembered> requests;
  std::string value;
  friend bool operator==(const Record&, const Record&) = default;

  // There is such a key, by that clock.
  bool is_there(int64_t now_ms) const { return !is_erased && now_ms < expires_ms; }
};

struct Decision {
  enum class Kind : uint8_t {
    kChanged,    // `record` is the new one
    kUnchanged,  // the condition does not hold
    kRepeated,   // it was carried out before, with this outcome
    kOutdated,   // the client asked for something later already
    kDoubtful,   // it may have been carried out and forgotten
  };
  Kind kind = Kind::kUnchanged;
  Outcome outcome;
  Record record;
};

// `since` is a version from before the request was sent for the first time: what was forgotten by
// then was not this. `version` is the one that a change gets. A key whose end has come by `now_ms`
// is not there.
Decision decide(const std::optional<Record>& now, const Command& command, RequestId id,
                uint64_t since, uint64_t version, int64_t now_ms);

}  // namespace cairn::kv::chain
