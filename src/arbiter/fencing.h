// SPDX-License-Identifier: Apache-2.0
// Fencing: keeps hosts that lost what they had from the pool's drives, also from drives that do not
// answer now.
//
// Where a host could not be fenced, that is recorded before what it had goes to others, and done as
// soon as the drive answers; until then nobody uses the drive for what the host had, and nothing is
// cleared there.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "arbiter/fence.h"
#include "arbiter/pool_store.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::arbiter {

class Fencing {
 public:
  // All outlive it. What fails in the background is tried again after `retry`.
  Fencing(env::Env& env, PoolStore& store, Fence& fence, Duration retry)
      : env_(env), store_(store), pool_(store.pool()), fence_(fence), retry_(retry) {}

  // Once the pool is read: goes on to fence hosts where they were not, until it is done or the
  // drive leaves the pool.
  void start();
  // Once, after the store was stopped.
  task::Task<void> close() { return gate_.close(); }

  // At all drives: those where it could not be fenced.
  task::Task<std::vector<MegaVolId>> fence(std::string host, task::CancelToken token);
  // Durably, before what the host had goes to others; whoever calls has the turn.
  task::Task<Result<void>> record_unfenced(VolumeId of, std::string host,
                                           std::vector<MegaVolId> drives);
  // Drives where a former holder of the volume was not fenced.
  std::vector<MegaVolId> unfenced_of(VolumeId id) const;
  // Nobody who lost what it had may still write to the drive. What is given from now on to be
  // cleared there may be another's.
  bool is_fenced(MegaVolId id) const;
  // The one that led before, before this one changes drives.
  task::Task<Result<void>> fence_former_writer(task::CancelToken token);

 private:
  task::Task<void> fence_late(MegaVolId id);
  task::Task<Result<void>> fence_next(MegaVolId id);

  env::Env& env_;
  PoolStore& store_;
  Pool& pool_;
  Fence& fence_;
  const Duration retry_;
  std::set<MegaVolId> late_;  // drives where hosts are being fenced late
  task::Gate gate_;
};

}  // namespace cairn::arbiter
