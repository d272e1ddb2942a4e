// SPDX-License-Identifier: Apache-2.0
// ConnectionSlots: how many connections a listener has, and whose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/list.h"
#include "base/units.h"
#include "env/address.h"
#include "env/address_key.h"

namespace cairn::env {

struct ConnectionLimits {
  uint32_t connections_max = 4096;
  // Connections of one address that have proven nothing yet. Those that have are not counted, so
  // that a host may have many queues, and many hosts one address.
  uint32_t unproven_max = 512;
  // Of connections_max, kept for addresses from which somebody was let in before; at most half.
  uint32_t reserved = 512;
};

// Strangers can neither take every place nor keep those of an address that they share with others:
// a connection that has proven nothing for kUnprovenTime makes room for the next one. Where
// somebody of the address was let in before, it does so however young it is: a host that comes
// again comes in, and has the time in which unproven_max others come. On one core.
class ConnectionSlots {
 public:
  static constexpr Duration kUnprovenTime = 1_s;
  static constexpr size_t kAddressesMax =
      4096;  // that are remembered; then the oldest is forgotten

  // The place of one connection. Left before it is destroyed.
  class Slot : public ListHook<> {
   public:
    bool is_in() const { return state_ != State::kOut; }

   private:
    friend class ConnectionSlots;
    enum class State : uint8_t { kOut, kUnproven, kLeaving, kProven };
    State state_ = State::kOut;
    AddressKey key_{};
    Time since_;
  };
  struct Entry {
    const char* refused = nullptr;  // why it did not come in, for people
    Slot* evicted = nullptr;        // has to end: the new one has its place
  };

  explicit ConnectionSlots(const ConnectionLimits& limits) : limits_(limits) {}

  Entry enter(Slot& slot, const Address& from, Time now);
  // It was let in: it counts against connections_max alone, and its address is remembered.
  void prove(Slot& slot, Time now);
  // Also of one that never came in.
  void leave(Slot& slot);

  size_t connections() const { return connections_; }

 private:
  struct Unproven {
    List<Slot> oldest_first;
    size_t count = 0;    // of them
    size_t leaving = 0;  // evicted, and still here
  };
  using UnprovenAt = std::map<AddressKey, Unproven>::iterator;
  bool may_evict(Unproven& others, const AddressKey& key, Time now) const;
  UnprovenAt find_unproven(const Slot& slot);
  void forget_unproven(Slot& slot);
  void forget_if_empty(UnprovenAt at);

  const ConnectionLimits limits_;
  size_t connections_ = 0;
  std::map<AddressKey, Unproven> unproven_;
  std::map<AddressKey, Time> known_;  // when somebody was let in last
};

}  // namespace cairn::env
