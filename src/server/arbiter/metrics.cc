// SPDX-License-Identifier: Apache-2.0
#include "server/arbiter/metrics.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/arbiter.h"
#include "arbiter/views.h"
#include "server/monitor/process_metrics.h"

namespace cairn::server {

namespace {

using arbiter::DriveView;
using arbiter::VolumeView;
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

ProcessState ArbiterSource::state() {
  health_.look();
  return {.role = "arbiter", .uptime = env_.now() - started_, .health = health_.worst()};
}

task::Task<void> ArbiterSource::tell_metrics(MetricsText& text) {
  const std::optional<Known> known = look(host_);
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
  const std::vector<KnownCondition> all = health_.look();
  Json json = {{"schema_version", 1},
               {"role", "arbiter"},
               {"health", name(health_.worst())},
               {"state", host_.is_leading() ? "leads" : "stands by"},
               {"reasons", Json::array()}};
  for (const KnownCondition& each : all) json["reasons"].push_back(condition_json(env_, each));
  co_return Wellness{.health = health_.worst(),
                     .json = json.dump(-1, ' ', true, Json::error_handler_t::replace)};
}

}  // namespace cairn::server
