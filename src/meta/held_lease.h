// SPDX-License-Identifier: Apache-2.0
// HeldLease: a lease that is kept alive, and a holder that knows when it is lost, in time.
//
// The store counts a lease from when it got a keep-alive, the holder from when it sent it, and it
// stops a tenth earlier: so the holder gives the lease up before the store does, as long as their
// clocks differ by less than that, whatever the network does. A process that stood still finds it
// lost when it goes on.
#pragma once

#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::meta {

// One core. The store outlives it.
class HeldLease {
 public:
  // Grants one and keeps it alive from now on. Errors as Store::grant().
  static task::Task<Result<std::unique_ptr<HeldLease>>> take(env::Env& env, Store& store,
                                                             Duration ttl,
                                                             task::CancelToken token = {});
  // Use take().
  HeldLease(env::Env& env, Store& store, Lease lease, Time sent);
  ~HeldLease();

  LeaseId id() const { return lease_.id; }
  // The store has it for certain. False is final.
  bool is_held() const { return !lost_.requested() && env_.now() < end_; }
  // Requested when it is lost, with kTimedOut.
  task::CancelToken lost_token() { return lost_.token(); }

  // Gives it back; its keys go, now if the store can be reached, else when it ends. Once, before
  // it is destroyed.
  task::Task<void> close();
  // In its place: keeps it alive no more, and lets it end by itself. Its keys stay until then, so
  // that the holder can put them by another lease, and nobody sees them gone.
  task::Task<void> abandon();

 private:
  task::Task<void> keep_alive();
  // False: lost.
  task::Task<bool> renew();
  Time end_after(Time sent, Duration ttl) const { return sent + ttl / 10 * 9; }

  env::Env& env_;
  Store& store_;
  Lease lease_;
  Time end_;
  task::CancelSource lost_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::meta
