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
#include "fabric/wire/lane_traffic.h"

namespace cairn::fabric {

// Connections that are counted together.
struct LaneKey {
  uint32_t listener = 0;  // in the order of Target::listen
  std::string nqn;        // of the subsystem; empty while, or if, no Connect has succeeded
  bool admin = false;
  bool is_connected() const { return !nqn.empty(); }
  auto operator<=>(const LaneKey&) const = default;
};

struct LaneWork {
  uint64_t commands = 0;
  // Of them, answered with anything but success; requests for events that ended with their session,
  // or because the host aborted them, are none.
  uint64_t failures = 0;
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
  uint64_t opened = 0;  // connections so far; without a subsystem those that ended
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

  // A connection begins, is connected to a subsystem, ends. It counts as opened when it is known
  // for what, so that no figure but `open` ever falls. Accounts live as long as the book.
  Account& begin(uint32_t listener) {
    Account& account = *accounts_.try_emplace(LaneKey{.listener = listener}).first;
    ++account.second.open;
    return account;
  }
  Account& connect(Account& from, const LaneKey& to) {
    --from.second.open;
    Account& account = *accounts_.try_emplace(to).first;
    ++account.second.open;
    ++account.second.opened;
    return account;
  }
  void end(Account& account, const LaneWork& work) {
    --account.second.open;
    if (!account.first.is_connected()) ++account.second.opened;
    account.second.work.add(work);
  }
  const Accounts& accounts() const { return accounts_; }

 private:
  Accounts accounts_;
};

}  // namespace cairn::fabric
