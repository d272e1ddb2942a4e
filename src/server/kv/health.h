// SPDX-License-Identifier: Apache-2.0
// KvHealth: how well a process is that serves keys and values: its drive, its place in a cluster,
// and the other nodes, looked at once a second; each change is an event.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "door/resp/options.h"
#include "env/env.h"
#include "kv/ring/view.h"
#include "server/events/conditions.h"
#include "server/events/event_log.h"
#include "server/kv/open_keyspace.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::server {

// One core. What it looks at outlives it.
class KvHealth {
 public:
  // `cluster`: none, the keys are all here.
  KvHealth(env::Env& env, const OpenKeyspace& keyspace,
           std::optional<door::resp::ClusterOptions> cluster, EventLog& log)
      : env_(env),
        keyspace_(keyspace),
        cluster_(std::move(cluster)),
        log_(log),
        conditions_(env, &log) {}

  // Failing: it knows no view of its cluster, or its drive cannot be used. Degraded: its lease is
  // over, or its drive has less to spare.
  const std::vector<KnownCondition>& look();
  drive::Health worst() const { return conditions_.worst(); }
  // Looks again and again until then.
  task::Task<void> run(task::CancelToken stop);

 private:
  void look_at_drive(std::vector<Condition>& all) const;
  void look_at_cluster(std::vector<Condition>& all);
  void tell_members(std::shared_ptr<const kv::ring::View> view);
  void tell_of(const kv::ring::Member& member, const char* code, const char* what);

  env::Env& env_;
  const OpenKeyspace& keyspace_;
  const std::optional<door::resp::ClusterOptions> cluster_;
  EventLog& log_;
  Conditions conditions_;
  std::shared_ptr<const kv::ring::View> seen_;  // null: none yet
};

}  // namespace cairn::server
