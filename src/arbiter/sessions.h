// SPDX-License-Identifier: Apache-2.0
// Sessions: who has a volume open. One at a time, and the one before is fenced before the next
// begins.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "arbiter/fencing.h"
#include "arbiter/pool_store.h"
#include "arbiter/tenant.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"
#include "volume/arbiter_link.h"

namespace cairn::arbiter {

class Sessions {
 public:
  // All outlive it. No tenant: nobody in this process has volumes open.
  Sessions(env::Env& env, PoolStore& store, Fencing& fencing, Tenant* tenant, Duration lease)
      : env_(env),
        store_(store),
        pool_(store.pool()),
        fencing_(fencing),
        tenant_(tenant),
        lease_(lease) {}

  // Once the pool is read: whoever had renewed a lease elsewhere has all of it once more.
  void start();

  // As ArbiterLink has them.
  task::Task<Result<volume::Opened>> open(volume::OpenArgs args, task::CancelToken token);
  Result<volume::Renewed> renew(volume::Session session);
  task::Task<Result<void>> close(volume::Session session, bool is_clean);

  // The volume of a session that is not over. Errors as ArbiterLink's.
  Result<Volume*> held(volume::Session session);
  // Its holder may go on without an arbiter.
  bool has_lease(const Volume& volume) const;
  // Somebody has it open, or had within a lease.
  bool is_held(const Volume& volume) const {
    return !volume.record.holder.empty() && has_lease(volume);
  }
  // Whoever has it open can write to it no more, and has it no more. kUnreachable: it cannot be
  // fenced now.
  task::Task<Result<void>> expel_holder(VolumeId id, task::CancelToken token);
  // Whoever heals the volume meanwhile has it no more.
  task::Task<void> end_healing(std::string name);
  // The volume is gone.
  void forget(VolumeId id) {
    lease_ends_.erase(id);
    turns_.erase(id);
  }

 private:
  env::Env& env_;
  PoolStore& store_;
  Pool& pool_;
  Fencing& fencing_;
  Tenant* const tenant_;
  const Duration lease_;
  std::map<VolumeId, Time> lease_ends_;
  std::map<VolumeId, uint64_t> turns_;  // the newest of each holder
};

}  // namespace cairn::arbiter
