// SPDX-License-Identifier: Apache-2.0
// Controller: who changes the view. Every node has one; the one that is elected works.
#pragma once

#include <string>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/ring/absences.h"
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
  Duration interval = 100_ms;  // between looks at the nodes
  AbsenceOptions absence;
  PlanOptions plan;
};

// One core. The store outlives it.
class Controller {
 public:
  Controller(env::Env& env, meta::Store& store, ControllerOptions options)
      : env_(env), store_(store), options_(std::move(options)), absences_(options_.absence) {}

  // Until the token is requested.
  task::Task<void> run(task::CancelToken token);

 private:
  task::Task<void> lead(meta::Leadership& leads, task::CancelToken token);
  task::Task<Result<bool>> step(meta::Leadership& leads, task::CancelToken token);
  static PlanInput judge(Roster& roster);

  env::Env& env_;
  meta::Store& store_;
  const ControllerOptions options_;
  Absences absences_;
};

}  // namespace cairn::kv::ring
