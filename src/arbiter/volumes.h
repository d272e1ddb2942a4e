// SPDX-License-Identifier: Apache-2.0
// Volumes: they are made, changed and destroyed.
#pragma once

#include <cstdint>
#include <string>

#include "arbiter/pool_store.h"
#include "arbiter/sessions.h"
#include "arbiter/terms_judge.h"
#include "share/auction.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/types.h"

namespace cairn::arbiter {

struct CreateArgs {
  std::string name;
  uint64_t bytes = 0;  // rounded up to extents
  uint32_t replicas = 1;
  volume::Weights weights;
  share::Terms terms;
};

class Volumes {
 public:
  // All outlive it. No judge: every floor is believed.
  Volumes(PoolStore& store, Sessions& sessions, const TermsJudge* judge)
      : store_(store), pool_(store.pool()), sessions_(sessions), judge_(judge) {}

  // Once the pool is read: destroys what is being destroyed, from now on.
  void start() { gate_.spawn(dismantle()); }
  // Once, after the store was stopped.
  task::Task<void> close();

  // kNoSpace: more than the pool can promise; kLimit: a floor that the judge refuses.
  task::Task<Result<VolumeRecord>> create(CreateArgs args);
  // Smaller only while nobody has it open: kExists.
  task::Task<Result<void>> resize(std::string name, uint64_t bytes);
  // How the next extents are placed.
  task::Task<Result<void>> set_weights(std::string name, volume::Weights weights);
  // Whoever has it open adds legs, or takes them away.
  task::Task<Result<void>> set_replicas(std::string name, uint32_t replicas);
  // What it has of drives' bandwidth, from now on, also while it is open. kLimit as create().
  task::Task<Result<void>> set_terms(std::string name, share::Terms terms);
  // Its name is free when its extents are. kExists: somebody has it open; with `by_force` they are
  // fenced first.
  task::Task<Result<void>> destroy(std::string name, bool by_force, task::CancelToken token);

 private:
  // kInvalid.
  Result<uint32_t> extents_for(uint64_t bytes) const;
  Result<void> check_terms(const std::string& volume, const share::Terms& terms) const;
  // Destroys volumes bit by bit.
  task::Task<void> dismantle();
  task::Task<Result<bool>> dismantle_step();

  PoolStore& store_;
  Pool& pool_;
  Sessions& sessions_;
  const TermsJudge* const judge_;
  task::Event leaving_;  // a volume is to be destroyed
  task::Gate gate_;
};

}  // namespace cairn::arbiter
