// SPDX-License-Identifier: Apache-2.0
// Operator: who keeps a simulated pool, makes its volumes, and uses snapshots and clones.
#pragma once

#include <cstdint>
#include <string>

#include "arbiter/arbiter_host.h"
#include "env/env.h"
#include "task/task.h"
#include "tests/volume/cluster_facts.h"

namespace cairn::volume_tests {

class Operator {
 public:
  // They outlive it.
  explicit Operator(ClusterFacts& facts) : facts_(facts) {}

  // Until the node stops: whenever the arbiter of this process leads, it gets the drives that are
  // missing, and the volumes "v0" and "v1".
  task::Task<void> run(env::Env& env, arbiter::ArbiterHost& host);
  // Everything goes from now on.
  void destroy_all() { is_destroying_ = true; }

 private:
  task::Task<void> use_snapshots(env::Env& env, arbiter::Arbiter& arbiter);
  task::Task<void> make_snapshot(arbiter::Arbiter& arbiter, std::string volume);
  task::Task<void> destroy_volumes(arbiter::Arbiter& arbiter);

  ClusterFacts& facts_;
  uint64_t last_snapshot_ = 0;  // numbers snapshots and clones
  bool is_destroying_ = false;
};

}  // namespace cairn::volume_tests
