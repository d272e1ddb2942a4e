// SPDX-License-Identifier: Apache-2.0
// Election: at most one of several candidates leads, and what a former leader still sends is void.
//
//   Result<std::unique_ptr<Leadership>> leads = co_await election.campaign(env.stop_token());
//   ...
//   Batch batch;
//   (*leads)->fence(batch);          // fails at this once another leads
//   batch.put("volume/7", record);
//
// Who leads holds a key of the store by a lease. A leader that loses its lease knows it before
// another can be elected (meta/held_lease.h). Each leadership has a fencing token, the revision
// that created the key: it grows from one to the next, so that those who are told it, a box for
// instance, can refuse an older one. Only the leader removes the key, and the end of its lease.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "meta/held_lease.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::meta {

struct ElectionOptions {
  std::string key;      // the same for all candidates
  std::string value;    // who this one is, for those who ask
  Duration ttl = 10_s;  // how long after a leader's death the next one leads, at most
};

class Leadership {
 public:
  Leadership(std::unique_ptr<HeldLease> lease, std::string key, Revision fencing)
      : lease_(std::move(lease)), key_(std::move(key)), fencing_(fencing) {}

  Revision fencing() const { return fencing_; }
  // False is final, and comes before another leads.
  bool is_leader() const { return lease_->is_held(); }
  // Requested when it does not lead any more.
  task::CancelToken lost_token() { return lease_->lost_token(); }
  // Adds the precondition that this is still the leadership.
  void fence(Batch& batch) const { batch.if_created(key_, fencing_); }

  // Another may lead from now on. Once, before it is destroyed.
  task::Task<void> resign() { return lease_->close(); }

 private:
  std::unique_ptr<HeldLease> lease_;
  std::string key_;
  Revision fencing_;
};

// One core. The store outlives it.
class Election {
 public:
  Election(env::Env& env, Store& store, ElectionOptions options)
      : env_(env), store_(store), options_(std::move(options)) {}

  // Waits until this candidate leads; through any trouble with the store that may pass. By the
  // token: kCancelled, kTimedOut; errors of the store that do not pass, kInvalid for instance.
  task::Task<Result<std::unique_ptr<Leadership>>> campaign(task::CancelToken token = {});

  // Its value is who leads; none: nobody.
  task::Task<Result<std::optional<Entry>>> leader(task::CancelToken token = {}) {
    return store_.get(options_.key, token);
  }

 private:
  // The revision that made this candidate the leader; none: somebody else is, or was.
  task::Task<Result<std::optional<Revision>>> try_once(LeaseId lease, task::CancelToken token);
  // Until the key is gone, as far as can be known.
  task::Task<Result<void>> wait_for_vacancy(task::CancelToken token);
  // With one lease, until it is lost.
  task::Task<Result<std::optional<Revision>>> run(HeldLease& lease, task::CancelToken token);

  env::Env& env_;
  Store& store_;
  ElectionOptions options_;
  LeaseId former_;  // of the campaign before: its key is in nobody's way if it was given back
};

}  // namespace cairn::meta
