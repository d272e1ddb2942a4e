// SPDX-License-Identifier: Apache-2.0
// Ledger: what a box has to give, and to whom it gave what. No I/O, no clock.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "rack/types.h"

namespace cairn::rack {

inline constexpr size_t kShelvesMax = 64;  // of one box

// A part of a box that may be given away.
struct Shelf {
  std::string name;
  Endpoint place;                  // where those who get some of it come
  Amount room;                     // all of it
  std::vector<std::string> hosts;  // NQNs of those who may ask; none: everybody who may connect

  bool allows(std::string_view host) const;
};

// Who asks, and through which subsystem: its list of hosts and its keys have let them in.
struct Asker {
  std::string host;
  std::string nqn;
};

class Ledger {
 public:
  // Contracts made before stay, also those of shelves that are not there any more.
  Ledger(std::vector<Shelf> shelves, std::vector<Contract> contracts);

  const std::vector<Shelf>& shelves() const { return shelves_; }
  const std::map<ContractId, Contract>& contracts() const { return contracts_; }
  // Null: none.
  const Contract* find(const ContractId& id) const;
  // What is left of a shelf; nothing of one that is not there, or that gave more than it has now.
  Amount spare(std::string_view shelf) const;

  // The contract that a reservation would make, without an nsid. kNotFound: no such shelf behind
  // this subsystem; kDenied: not for this host; kNoSpace; kLimit: too many contracts; kExists: the
  // id is that of a contract that is not the same.
  Result<Contract> drafted(const Asker& asker, const SpaceRequest& request) const;
  // Whether this asker may end the contract. kDenied.
  Result<void> may_release(const Asker& asker, const Contract& contract) const;

  void add(Contract contract);
  void confirm(const ContractId& id);
  void remove(const ContractId& id) { contracts_.erase(id); }

 private:
  const Shelf* shelf(std::string_view name) const;

  std::vector<Shelf> shelves_;
  std::map<ContractId, Contract> contracts_;
};

}  // namespace cairn::rack
