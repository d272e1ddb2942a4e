// SPDX-License-Identifier: Apache-2.0
#include "server/arbiter/health.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <utility>

#include "arbiter/arbiter.h"
#include "base/error_text.h"
#include "task/deadline.h"

namespace cairn::server {

using arbiter::DriveView;
using arbiter::VolumeView;
using drive::Health;

namespace {

constexpr Duration kLook = 1_s;

std::string extents(uint64_t count) {
  return count == 1 ? "1 extent" : fmt::format("{} extents", count);
}

}  // namespace

std::vector<Condition> pool_conditions(const arbiter::PoolView& pool,
                                       const std::vector<VolumeView>& volumes) {
  std::vector<Condition> all;
  for (const VolumeView& each : volumes) {
    if (each.lacking == 0 || each.record.is_leaving) continue;
    all.push_back({.code = "replicas_missing",
                   .kind = "volume",
                   .subject = each.record.name,
                   .what = fmt::format("{} of {} with fewer replicas in order than {}",
                                       extents(each.lacking), each.mapped, each.record.replicas),
                   .action = "cairn pool list",
                   .left = each.lacking});
  }
  for (const DriveView& each : pool.drives) {
    const std::string id = fmt::to_string(each.info.id.value());
    if (each.unfenced > 0) {
      all.push_back({.code = "clients_not_fenced",
                     .kind = "pool_drive",
                     .subject = id,
                     .what = fmt::format("it could not be told of {} clients that lost what they "
                                         "had there: make {} reachable, or remove it",
                                         each.unfenced, each.info.uri),
                     .action = fmt::format("cairn pool remove {} --lost --dry-run", id)});
    }
    if (each.info.is_leaving) {
      all.push_back(
          {.health = Health::kOk,
           .code = "draining",
           .kind = "pool_drive",
           .subject = id,
           .what = fmt::format("{} leave it for others ({})", extents(each.legs), each.info.uri),
           .action = "cairn pool list",
           .left = each.legs});
    }
  }
  return all;
}

std::vector<KnownCondition> ArbiterHealth::look() {
  std::vector<Condition> own;
  if (const std::optional<Error>& error = host_.last_error(); error && !host_.is_leading()) {
    own.push_back({.health = Health::kFailing,
                   .code = "does_not_lead",
                   .kind = "arbiter",
                   .subject = name_,
                   .what = fmt::format("it was elected and does not lead: {}", error_text(*error)),
                   .action = "cairn arbiter status"});
  }
  std::vector<KnownCondition> all = leading_.take_in(std::move(own));
  const Result<arbiter::ArbiterHost::Use> use = host_.use();
  if (!use) {
    // Another one knows how the pool is, and tells.
    knows_members_ = false;
    pool_.forget();
    return all;
  }
  const arbiter::PoolView pool = arbiter::view_of((**use).pool());
  tell_members(pool);
  const arbiter::VolumePage page = arbiter::volumes_after((**use).pool(), "");
  std::ranges::copy(pool_.take_in(pool_conditions(pool, page.volumes)), std::back_inserter(all));
  return all;
}

void ArbiterHealth::tell_members(const arbiter::PoolView& pool) {
  std::set<uint64_t> now;
  for (const DriveView& each : pool.drives) {
    const uint64_t id = each.info.id.value();
    now.insert(id);
    if (!knows_members_ || members_.contains(id)) continue;
    log_.tell({.kind = "pool_drive",
               .subject = fmt::to_string(id),
               .code = "joined",
               .what = fmt::format("it joined the pool: {}", each.info.uri),
               .action = "cairn pool list"});
  }
  for (const uint64_t id : members_) {
    if (!knows_members_ || now.contains(id)) continue;
    log_.tell({.kind = "pool_drive",
               .subject = fmt::to_string(id),
               .code = "left",
               .what = "it left the pool",
               .action = "cairn pool list"});
  }
  members_ = std::move(now);
  knows_members_ = true;
}

void ArbiterHealth::tell_leading(bool is_leading) {
  log_.tell({.kind = "arbiter",
             .subject = name_,
             .code = is_leading ? "leads" : "stands_by",
             .what = is_leading ? "it leads" : "it stands by",
             .action = "cairn arbiter status"});
  // What joins from here on is news.
  if (is_leading) look();
}

task::Task<void> ArbiterHealth::run(task::CancelToken stop) {
  for (;;) {
    look();
    const Result<void> slept = co_await task::sleep_for(env_, kLook, stop);
    if (!slept) co_return;
  }
}

}  // namespace cairn::server
