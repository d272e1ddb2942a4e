// SPDX-License-Identifier: Apache-2.0
// Membership: a node's place in the ring, by a lease in the metadata store, and the newest view.
//
// Keys below the prefix: `view`, `node/<member>` (by the node's lease), `controller` (who changes
// the view). A node whose lease is lost takes another one, as another incarnation. It leaves the
// lost one to end by itself and puts its record by the new one: if the store still has the record
// then, nobody sees the node away.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/ring/view.h"
#include "kv/ring/view_format.h"
#include "meta/held_lease.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::ring {

std::string view_key(const std::string& prefix);
std::string nodes_prefix(const std::string& prefix);
std::string node_key(const std::string& prefix, MemberId member);

struct MembershipOptions {
  std::string prefix = "kv/";
  Duration lease = 3_s;
  Duration retry = 100_ms;
};

// One core. The store outlives it.
class Membership {
 public:
  // Told each newer view, and of each new incarnation; waits for nothing.
  using OnView = std::function<void(std::shared_ptr<const View> view, Incarnation mine)>;

  Membership(env::Env& env, meta::Store& store, Member self, MembershipOptions options,
             OnView on_view);

  // Until the token is requested; gives the lease back then.
  task::Task<void> run(task::CancelToken token);

  // What this node is told may be served: its lease is good by its own clock.
  bool is_held() const { return lease_ != nullptr && lease_->is_held(); }
  Incarnation incarnation() const { return self_.incarnation; }
  const std::shared_ptr<const View>& view() const { return view_; }

  // What the controller is told, soon.
  void set_copied(std::vector<std::pair<uint64_t, Epoch>> copied);
  void set_leaving();

 private:
  task::Task<void> follow_view(task::CancelToken token);
  task::Task<Result<void>> follow_once(task::CancelToken token);
  void take_view(const std::string& bytes);
  // With one lease, until it is lost.
  task::Task<void> stay(task::CancelToken token);
  task::Task<Result<void>> tell(meta::Revision& last, task::CancelToken token);
  Incarnation next_incarnation();

  env::Env& env_;
  meta::Store& store_;
  Member self_;
  const MembershipOptions options_;
  const OnView on_view_;
  std::shared_ptr<const View> view_;
  std::unique_ptr<meta::HeldLease> lease_;
  std::vector<std::pair<uint64_t, Epoch>> copied_;
  task::Event news_;  // for the controller
};

}  // namespace cairn::kv::ring
