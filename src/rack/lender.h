// SPDX-License-Identifier: Apache-2.0
// Lender: gives a box's spare space to those who ask for it, and takes it back.
//
// A reservation is made at once, or refused; it is durable when it is answered, and asking again
// with the same id gives the same answer. At the end of its term, which begins anew when the box
// does, the metadata store is asked what became of it (rack/pledge.h): confirmed contracts stay
// until their owner releases them, others are given back. Nothing but the store's word or the
// owner's ends a contract.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "meta/store.h"
#include "rack/billboard.h"
#include "rack/ledger.h"
#include "rack/types.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::rack {

// Where the space is. One call at a time; each is durable when it is done, and has changed nothing
// when it fails.
class LentSpace {
 public:
  // Makes the contract's space and serves it: the nsid.
  virtual task::Task<Result<uint32_t>> add(Contract contract) = 0;
  // Whether its owner is connected in a way that could read and write it.
  virtual bool is_used(const Contract& contract) const = 0;
  // Keeps that it is confirmed.
  virtual task::Task<Result<void>> confirm(Contract contract) = 0;
  // Ends it, and its data. Hosts that use it find it gone. Its space is free when this has
  // succeeded, not before; it can be called again, also of a contract that is as good as ended.
  virtual task::Task<Result<void>> remove(Contract contract) = 0;

 protected:
  ~LentSpace() = default;
};

struct LenderOptions {
  std::string box;
  std::vector<Shelf> shelves;
  Duration term = 60_s;
  Duration expiry = 15_s;  // of offers
  // What people should know, as a sentence; may be left out.
  std::function<void(std::string)> log;
};

// On one core, which is the store's; store and space outlive it. Closed before it is destroyed.
class Lender {
 public:
  // `contracts`: those that the space has kept.
  Lender(env::Env& env, meta::Store& store, LentSpace& space, LenderOptions options,
         std::vector<Contract> contracts);

  // Publishes offers and settles terms from now on.
  void start();
  // The nsid of a reservation; of a release nothing, also when there is no such contract. Errors as
  // Ledger::drafted and may_release, and those of LentSpace. kMismatch: it is in use, and not to be
  // released by force. kClosed: the box is about to end.
  task::Task<Result<uint32_t>> ask(Asker asker, SpaceRequest request);
  const Ledger& ledger() const { return ledger_; }
  // Takes the offers away and stops. Once.
  task::Task<void> close();

 private:
  std::vector<Offer> offers() const;
  task::Task<Result<uint32_t>> answer_in_turn(Asker asker, SpaceRequest request);
  task::Task<Result<uint32_t>> reserve(Asker asker, SpaceRequest request);
  task::Task<Result<uint32_t>> release(Asker asker, SpaceRequest request);
  task::Task<Result<void>> give_back(ContractId id);
  task::Task<void> watch_terms();
  // False: ask again later.
  task::Task<bool> settle_one(Contract contract);
  void log(std::string line) const {
    if (options_.log) options_.log(std::move(line));
  }

  env::Env& env_;
  meta::Store& store_;
  LentSpace& space_;
  LenderOptions options_;
  Ledger ledger_;
  std::map<ContractId, Time> terms_;  // ends of those not confirmed
  Publisher publisher_;
  task::Semaphore turn_{1};
  task::Event terms_moved_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::rack
