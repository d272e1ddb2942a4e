// SPDX-License-Identifier: Apache-2.0
// Lease: an opening of a volume that its holder knows to have lost in time.
//
// The arbiter counts a lease from when it answered, the holder from when it asked, and the holder
// stops a tenth earlier. So the holder gives up first, as long as clocks differ by less than that.
#pragma once

#include <functional>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/arbiter_link.h"

namespace cairn::volume {

// One core. The link outlives it.
class Lease {
 public:
  using OnRenewed = std::function<void(const Renewed&)>;

  // Of a session that was asked for at `sent`. Renewed from now on; each answer is passed on.
  Lease(env::Env& env, ArbiterLink& link, Session session, Duration lease, Time sent,
        OnRenewed on_renewed);
  ~Lease();

  Session session() const { return session_; }
  // False is final.
  bool is_held() const { return !lost_.requested() && env_.now() < end_; }
  // Requested when it is lost.
  task::CancelToken lost_token() { return lost_.token(); }
  // The arbiter said that the session is over.
  void lose() { lost_.request(); }
  // The last time that an arbiter answered.
  Time answered() const { return answered_; }
  // Asks at once.
  void hurry() { hurry_.set(); }
  // Until an arbiter says, asked from now on, that the session is not over. kDenied: it is; by the
  // token.
  task::Task<Result<void>> confirm(task::CancelToken token);
  Duration length() const { return length_; }

  // Once, before it is destroyed. The session stays.
  task::Task<void> close();

 private:
  task::Task<void> keep();
  task::Task<bool> renew();

  env::Env& env_;
  ArbiterLink& link_;
  const Session session_;
  Duration length_;
  Time end_;
  Time answered_;
  OnRenewed on_renewed_;
  uint64_t asked_ = 0;      // calls so far
  uint64_t confirmed_ = 0;  // the last of them that succeeded
  task::Event hurry_;
  task::Event moved_;
  task::CancelSource lost_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::volume
