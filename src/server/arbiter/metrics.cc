// SPDX-License-Identifier: Apache-2.0
#include "server/arbiter/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/arbiter.h"
#include "arbiter/views.h"
#include "base/error_text.h"
#include "server/monitor/process_metrics.h"

namespace cairn::server {

namespace {

using arbiter::DriveView;
using arbiter::VolumeView;
using drive::Health;
using Json = nlohmann::ordered_json;
using Type = MetricsText::Type;

// What the arbiter that leads knows of its pool.
struct Known {
  arbiter::PoolView pool;
  arbiter::VolumePage page;
  arbiter::Arbiter::Counters counters;
};

std::optional<Known> look(arbiter::ArbiterHost& host) {
  const Result<arbiter::ArbiterHost::Use> use = host.use();
  if (!use) return std::nullopt;
  const arbiter::Arbiter& arbiter = **use;
  return Known{.pool = arbiter::view_of(arbiter.pool()),
               .page = arbiter::volumes_after(arbiter.pool(), ""),
               .counters = arbiter.counters()};
}

struct Reason {
  Health health = Health::kDegraded;
  std::string what;
};

std::vector<Reason> reasons_of(const arbiter::ArbiterHost& host,
                               const std::optional<Known>& known) {
  std::vector<Reason> reasons;
  if (const std::optional<Error>& error = host.last_error(); error && !host.is_leading()) {
    reasons.push_back({Health::kFailing,
                       fmt::format("it was elected and does not lead: {}", error_text(*error))});
  }
  if (!known) return reasons;
  for (const VolumeView& each : known->page.volumes) {
    if (each.lacking == 0) continue;
    reasons.push_back(
        {Health::kDegraded,
         fmt::format("volume {} has {} extents with fewer replicas in order than {}: 'cairn pool "
                     "list' says which drives are there",
                     each.record.name, each.lacking, each.record.replicas)});
  }
  for (const DriveView& each : known->pool.drives) {
    if (each.unfenced == 0) continue;
    reasons.push_back(
        {Health::kDegraded,
         fmt::format(
             "drive {} of the pool could not be told of {} clients that lost what they had there: "
             "make {} reachable, or 'cairn pool remove' it",
             each.info.id.value(), each.unfenced, each.info.uri)});
  }
  return reasons;
}

Health worst_of(const std::vector<Reason>& reasons) {
  Health worst = Health::kOk;
  for (const Reason& each : reasons) worst = std::max(worst, each.health);
  return worst;
}

void add_drives(MetricsText& text, const arbiter::PoolView& pool) {
  using Value = std::function<uint64_t(const DriveView&)>;
  const auto add = [&](const char* name, const char* help, const Value& value) {
    text.family(Type::kGauge, name, help);
    for (const DriveView& each : pool.drives) {
      text.sample({{"drive", fmt::to_string(each.info.id.value())},
                   {"box", each.info.box},
                   {"rack", each.info.rack}},
                  value(each));
    }
  };
  const uint64_t size = pool.extent_bytes;
  add("cairn_pool_drive_size_bytes", "Space of a drive of the pool.",
      [size](const DriveView& each) { return each.info.extents * size; });
  add("cairn_pool_drive_free_bytes", "Space of it that nobody has.",
      [size](const DriveView& each) { return each.free * size; });
  add("cairn_pool_drive_cleaning_bytes", "Space of it that is cleared before it is free.",
      [size](const DriveView& each) { return each.cleaning * size; });
  add("cairn_pool_drive_legs", "Replicas of extents that it has.",
      [](const DriveView& each) { return each.legs; });
  add("cairn_pool_drive_draining", "1 while what it has moves to others.",
      [](const DriveView& each) { return each.info.is_leaving ? 1 : 0; });
  add("cairn_pool_drive_unfenced_clients",
      "Clients that lost what they had there, and could not be kept from writing yet.",
      [](const DriveView& each) { return each.unfenced; });
}

void add_volumes(MetricsText& text, const std::vector<VolumeView>& volumes) {
  using Value = std::function<uint64_t(const VolumeView&)>;
  const auto add = [&](const char* name, const char* help, const Value& value) {
    text.family(Type::kGauge, name, help);
    for (const VolumeView& each : volumes) {
      text.sample({{"volume", each.record.name}}, value(each));
    }
  };
  add("cairn_volume_size_bytes", "Size of a volume, as its user sees it.",
      [](const VolumeView& each) { return each.bytes; });
  add("cairn_volume_mapped_bytes", "How much of it has space.",
      [](const VolumeView& each) { return each.mapped * each.extent_bytes; });
  add("cairn_volume_shared_bytes", "How much of that snapshots or clones have too.",
      [](const VolumeView& each) { return each.shared * each.extent_bytes; });
  add("cairn_volume_lacking_bytes", "How much has fewer replicas in order than the volume has.",
      [](const VolumeView& each) { return each.lacking * each.extent_bytes; });
  add("cairn_volume_replicas", "Replicas that it is to have.",
      [](const VolumeView& each) { return each.record.replicas; });
  add("cairn_volume_open", "1 while a client has it open, or may still have.",
      [](const VolumeView& each) { return each.record.holder.empty() ? 0 : 1; });
}

}  // namespace

task::Task<void> ArbiterSource::tell_metrics(MetricsText& text) {
  const std::optional<Known> known = look(host_);
  add_process(text, env_,
              {.role = "arbiter",
               .uptime = env_.now() - started_,
               .health = worst_of(reasons_of(host_, known))});
  text.family(Type::kGauge, "cairn_arbiter_leading", "1 while this arbiter leads.");
  text.sample({}, host_.is_leading() ? 1 : 0);
  if (!known) co_return;
  text.family(Type::kGauge, "cairn_pool_volumes", "Volumes of the pool, without snapshots.");
  text.sample({}, known->pool.volumes);
  text.family(Type::kCounter, "cairn_arbiter_allocating_commits_total",
              "Commits that gave extents to volumes, since it leads.");
  text.sample({}, known->counters.allocating_commits);
  text.family(Type::kCounter, "cairn_arbiter_extents_allocated_total",
              "Extents that they gave, since it leads.");
  text.sample({}, known->counters.extents_allocated);
  add_drives(text, known->pool);
  add_volumes(text, known->page.volumes);
}

task::Task<Wellness> ArbiterSource::tell_health() {
  const std::vector<Reason> reasons = reasons_of(host_, look(host_));
  const Health health = worst_of(reasons);
  Json json = {{"schema_version", 1},
               {"role", "arbiter"},
               {"health", name(health)},
               {"state", host_.is_leading() ? "leads" : "stands by"},
               {"reasons", Json::array()}};
  for (const Reason& each : reasons) {
    json["reasons"].push_back({{"health", name(each.health)}, {"what", each.what}});
  }
  co_return Wellness{.health = health,
                     .json = json.dump(-1, ' ', true, Json::error_handler_t::replace)};
}

}  // namespace cairn::server
