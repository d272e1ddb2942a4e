// SPDX-License-Identifier: Apache-2.0
#include "server/kv/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "task/deadline.h"

namespace cairn::server {

using drive::Health;
using kv::ring::Member;
using kv::ring::View;

namespace {

constexpr Duration kLook = 1_s;
constexpr const char* kRingShow = "cairn kv ring show";

}  // namespace

void KvHealth::look_at_drive(std::vector<Condition>& all) const {
  const std::optional<drive::StackHealth> health = keyspace_.health();
  if (!health) return;
  for (const drive::HealthReason& each : health->reasons) {
    const std::string about = each.below.empty() ? "" : each.below + ": ";
    all.push_back(
        {.health = std::min(each.health, health->health),
         .code = each.code,
         .kind = "drive",
         .subject = "keys",
         .place = each.below.empty() ? each.path : each.below_path,
         .what = fmt::format("{} (layer {}): {}{}", each.layer, each.path, about, each.what),
         .action = "cairn kv stats"});
  }
}

void KvHealth::look_at_cluster(std::vector<Condition>& all) {
  if (!cluster_ || !cluster_->view) return;
  const std::shared_ptr<const View> view = cluster_->view();
  tell_members(view);
  if (view == nullptr) {
    all.push_back({.health = Health::kFailing,
                   .code = "no_view",
                   .kind = "kv_node",
                   .subject = "this node",
                   .what = "it knows no view of its cluster yet",
                   .action = kRingShow});
    return;
  }
  const Member* const self = view->member(cluster_->self);
  const std::string name = self == nullptr ? "this node" : self->name;
  if (cluster_->is_current && !cluster_->is_current()) {
    all.push_back({.code = "lease_over",
                   .kind = "kv_node",
                   .subject = name,
                   .what =
                       "it could not renew its lease in the metadata store, and answers nothing "
                       "until it can",
                   .action = kRingShow});
  }
}

void KvHealth::tell_of(const Member& member, const char* code, const char* what) {
  log_.tell(
      {.kind = "kv_node", .subject = member.name, .code = code, .what = what, .action = kRingShow});
}

// Each node tells of all: who has only one's events sees what became of the others.
void KvHealth::tell_members(std::shared_ptr<const View> view) {
  if (view == nullptr || view == seen_) return;
  if (seen_ != nullptr) {
    for (const Member& each : view->members) {
      const Member* const before = seen_->member(each.id);
      if (before == nullptr) {
        tell_of(each, "joined", "it is in the ring");
      } else if (before->state != each.state) {
        const bool is_leaving = each.state == Member::State::kLeaving;
        tell_of(each, is_leaving ? "draining" : "staying",
                is_leaving ? "its keys go to others" : "it stays in the ring after all");
      }
    }
    for (const Member& each : seen_->members) {
      if (view->member(each.id) == nullptr) tell_of(each, "left", "it is not in the ring any more");
    }
  }
  seen_ = std::move(view);
}

const std::vector<KnownCondition>& KvHealth::look() {
  std::vector<Condition> all;
  look_at_cluster(all);
  look_at_drive(all);
  return conditions_.take_in(std::move(all));
}

task::Task<void> KvHealth::run(task::CancelToken stop) {
  for (;;) {
    look();
    const Result<void> slept = co_await task::sleep_for(env_, kLook, stop);
    if (!slept) co_return;
  }
}

}  // namespace cairn::server
