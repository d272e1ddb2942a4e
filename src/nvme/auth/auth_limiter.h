// SPDX-License-Identifier: Apache-2.0
// AuthLimiter: after failures to authenticate, the answers to further attempts under the same name
// from the same address are delayed more and more.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/address_key.h"

namespace cairn::nvme {

// Hosts are distinguished by the name they give and by their address (AddressKey): one that fails
// does not slow down others behind the same address. On one core.
class AuthLimiter {
 public:
  struct Who {
    env::Address peer;
    std::string host_nqn;  // as it calls itself; empty: it did not come so far
  };
  static constexpr size_t kEntriesMax = 1024;  // then the one that failed longest ago is forgotten
  static constexpr Duration kPauseMin = 100_ms;  // after the first failure; doubles with each
  static constexpr Duration kPauseMax = 5_s;
  static constexpr Duration kMemory = 600_s;  // after so long without a failure it is forgotten

  // When an attempt that comes now is to be answered, `wait_max` from now at most. Attempts of one
  // host take turns: one that opens many connections is not faster. kLimit: too many are waiting,
  // which is no failure.
  Result<Time> take_turn(const Who& who, Time now, Duration wait_max);
  void failed(const Who& who, Time now);
  void succeeded(const Who& who);

  size_t entries() const { return entries_.size(); }

 private:
  struct Key {
    env::AddressKey address;
    std::string host_nqn;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    uint32_t failures = 0;
    Time last;  // failure
    Time next;  // turn that is free
  };
  static Key key_of(const Who& who) { return {env::key_of(who.peer), who.host_nqn}; }
  static Duration pause_of(const Entry& entry);

  std::map<Key, Entry> entries_;
};

}  // namespace cairn::nvme
