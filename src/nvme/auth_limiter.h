// SPDX-License-Identifier: Apache-2.0
// AuthLimiter: whoever fails to authenticate waits longer and longer before the next attempt from
// the same address is answered.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"

namespace cairn::nvme {

// Addresses are told apart without their ports, IPv6 by its first half, which is what one owner
// has. On one core.
class AuthLimiter {
 public:
  static constexpr size_t kAddressesMax =
      1024;  // then the one that failed longest ago is forgotten
  static constexpr Duration kPauseMin = 100_ms;  // after the first failure; doubles with each
  static constexpr Duration kPauseMax = 5_s;
  static constexpr Duration kWaitMax = 15_s;  // attempts that would wait longer are refused
  static constexpr Duration kMemory = 600_s;  // after so long without a failure it is forgotten

  // When an attempt that comes now is to be answered. Attempts of one address take turns: one that
  // opens many connections is not faster. kLimit: too many are waiting.
  Result<Time> take_turn(const env::Address& from, Time now);
  void failed(const env::Address& from, Time now);
  void succeeded(const env::Address& from);

  size_t addresses() const { return entries_.size(); }

 private:
  using Key = std::array<uint8_t, 17>;
  struct Entry {
    uint32_t failures = 0;
    Time last;  // failure
    Time next;  // turn that is free
  };
  static Key key_of(const env::Address& address);
  static Duration pause_of(const Entry& entry);

  std::map<Key, Entry> entries_;
};

}  // namespace cairn::nvme
