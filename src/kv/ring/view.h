// SPDX-License-Identifier: Apache-2.0
// View: who keeps which keys, at one moment; a value that the controller changes step by step.
//
// The places of keys are a ring, cut into ranges. The nodes of a range's chain, from head to tail,
// keep its keys. A chain has an epoch, that of the view in which it changed last; nodes of equal
// epoch agree about the chain, whatever else differs between their views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace cairn::kv::ring {

using Epoch = Id<struct RingEpochTag>;
// A store, for as long as it keeps what it holds: one that was emptied is another member.
using MemberId = Id<struct RingMemberTag>;
// A process at a store, between one lease and the next. The upper bits are drawn by the process,
// the lower ones count its leases.
using Incarnation = Id<struct RingIncarnationTag>;
inline constexpr int kLeaseCountBits = 16;
// Whether the same process had both leases: what it knew with one it knows with the other.
constexpr bool is_same_process(Incarnation one, Incarnation other) {
  return one.value() >> kLeaseCountBits == other.value() >> kLeaseCountBits;
}

inline constexpr uint32_t kTokensPerDrive = 30;
inline constexpr uint32_t kDrivesMax = 64;  // of a member
inline constexpr uint32_t kReplicasMax = 7;
inline constexpr size_t kMembersMax = 256;
inline constexpr size_t kRangesMax = 2048;
inline constexpr size_t kNameMax = 255;  // of each text of a member

struct Location {
  std::string machine;  // empty: nobody else's
  std::string rack;     // the same
  friend bool operator==(const Location&, const Location&) = default;
};

struct Member {
  enum class State : uint8_t { kHere, kLeaving };
  MemberId id;
  Incarnation incarnation;
  std::string address;  // of its chain service
  std::string name;     // for people
  std::string resp;     // where clients of Redis find it; empty: nowhere
  Location location;
  uint32_t drives = 1;  // its share grows with them
  State state = State::kHere;
  friend bool operator==(const Member&, const Member&) = default;
};

struct Replica {
  // Only those that are kRunning answer reads. One that is kJoining gets every write and a copy of
  // what was there before; one that is kLeaving gets every write until it knows that it leaves.
  enum class State : uint8_t { kRunning, kJoining, kLeaving };
  MemberId member;
  State state = State::kRunning;
  friend bool operator==(const Replica&, const Replica&) = default;
};

// Keys whose place is above the range before, up to `end`; the first range goes on behind the last.
struct RingRange {
  uint64_t end = 0;
  Epoch epoch;
  std::vector<Replica> chain;  // head first; who joins is the last
  friend bool operator==(const RingRange&, const RingRange&) = default;

  std::optional<size_t> position(MemberId member) const;
  // Who answers reads of keys that are being written: the last that is running.
  std::optional<size_t> read_tail() const;
  size_t running() const;
  // Who is named to clients that know one node for a key: the first that is running.
  std::optional<MemberId> named() const;
};

struct View {
  Epoch epoch;
  uint32_t replicas = 3;
  std::vector<Member> members;    // by id
  std::vector<RingRange> ranges;  // by end; at least one
  friend bool operator==(const View&, const View&) = default;

  const Member* member(MemberId id) const;
  size_t range_index(uint64_t hash) const;
  const RingRange& range_of(uint64_t hash) const { return ranges[range_index(hash)]; }
};

// Where a key lies on the ring: at its slot (slot.h). Equal on every machine.
uint64_t hash_of(std::string_view key);

}  // namespace cairn::kv::ring
