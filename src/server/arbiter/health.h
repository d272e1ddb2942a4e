// SPDX-License-Identifier: Apache-2.0
// ArbiterHealth: how well an arbiter, its pool and its volumes are, looked at once a second; each
// change is an event.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/arbiter_host.h"
#include "arbiter/views.h"
#include "env/env.h"
#include "server/events/conditions.h"
#include "server/events/event_log.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::server {

// What the arbiter that leads says of its drives and of its volumes that is not as it should be.
std::vector<Condition> pool_conditions(const arbiter::PoolView& pool,
                                       const std::vector<arbiter::VolumeView>& volumes);

// One core. The host and the log outlive it.
class ArbiterHealth {
 public:
  ArbiterHealth(env::Env& env, arbiter::ArbiterHost& host, std::string name, EventLog& log)
      : env_(env),
        host_(host),
        name_(std::move(name)),
        log_(log),
        leading_(env, &log),
        pool_(env, &log) {}

  // Failing: it was elected, and cannot lead. Degraded: replicas are missing, or somebody could not
  // be fenced. Of volumes those are looked at that the first page has.
  std::vector<KnownCondition> look();
  drive::Health worst() const { return std::max(leading_.worst(), pool_.worst()); }
  // It leads, or does so no more.
  void tell_leading(bool is_leading);
  // Looks again and again until then.
  task::Task<void> run(task::CancelToken stop);

 private:
  void tell_members(const arbiter::PoolView& pool);

  env::Env& env_;
  arbiter::ArbiterHost& host_;
  const std::string name_;
  EventLog& log_;
  Conditions leading_;
  Conditions pool_;  // known while it leads
  bool knows_members_ = false;
  std::set<uint64_t> members_;  // drives of the pool
};

}  // namespace cairn::server
