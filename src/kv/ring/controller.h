// SPDX-License-Identifier: Apache-2.0
// Controller: who changes the view. Every node has one; the one that is elected works.
#pragma once

#include <map>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/ring/plan.h"
#include "kv/ring/roster.h"
#include "meta/election.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::kv::ring {

struct ControllerOptions {
  std::string prefix = "kv/";
  std::string name;  // of this candidate
  Duration election_ttl = 3_s;
  Duration interval = 100_ms;      // between looks at the nodes
  Duration give_up_after = 600_s;  // a member that is away so long loses its place
  PlanOptions plan;
};

// One core. The store outlives it.
class Controller {
 public:
  Controller(env::Env& env, meta::Store& store, ControllerOptions options)
      : env_(env), store_(store), options_(std::move(options)) {}

  // Until the token is requested.
  task::Task<void> run(task::CancelToken token);

 private:
  task::Task<void> lead(meta::Leadership& leads, task::CancelToken token);
  task::Task<Result<bool>> step(meta::Leadership& leads, task::CancelToken token);
  PlanInput judge(Roster& roster);

  env::Env& env_;
  meta::Store& store_;
  const ControllerOptions options_;
  std::map<MemberId, Time> away_since_;
};

}  // namespace cairn::kv::ring
