// SPDX-License-Identifier: Apache-2.0
// LaneBook: what the connections of one core of a target have done, those that ended included.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/ids.h"
#include "env/address.h"
#include "fabric/lane_traffic.h"

namespace cairn::fabric {

// Connections that are counted together.
struct LaneKey {
  uint32_t listener = 0;  // in the order of Target::listen
  std::string nqn;        // of the subsystem; empty while, or if, no Connect has succeeded
  bool admin = false;
  auto operator<=>(const LaneKey&) const = default;
};

struct LaneWork {
  uint64_t commands = 0;
  uint64_t failures = 0;  // of them, answered with anything but success
  LaneTraffic traffic;

  void add(const LaneWork& other) {
    commands += other.commands;
    failures += other.failures;
    traffic.add(other.traffic);
  }
};

// One connection as it is at the moment.
struct TargetLane {
  CoreId core{};
  LaneKey key;
  env::Address peer;
  uint16_t controller_id = 0;
  uint16_t queue_id = 0;
  uint16_t queue_entries = 0;
  uint32_t in_flight = 0;
  LaneWork work;
};

struct LaneTotals {
  uint64_t opened = 0;  // connections so far
  uint64_t open = 0;    // of them, there now
  LaneWork work;

  void add(const LaneTotals& other) {
    opened += other.opened;
    open += other.open;
    work.add(other.work);
  }
};

// As many accounts as there are listeners and subsystems that hosts connected to, times two.
class LaneBook {
 public:
  using Accounts = std::map<LaneKey, LaneTotals>;
  using Account = Accounts::value_type;  // its work is that of connections that ended

  // A connection begins, becomes another kind, ends. Accounts live as long as the book.
  Account& open(const LaneKey& key) {
    Account& account = *accounts_.try_emplace(key).first;
    ++account.second.opened;
    ++account.second.open;
    return account;
  }
  Account& move(Account& from, const LaneKey& to) {
    --from.second.opened;
    --from.second.open;
    return open(to);
  }
  void close(Account& account, const LaneWork& work) {
    --account.second.open;
    account.second.work.add(work);
  }
  const Accounts& accounts() const { return accounts_; }

 private:
  Accounts accounts_;
};

}  // namespace cairn::fabric
