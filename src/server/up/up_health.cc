// SPDX-License-Identifier: Apache-2.0
#include "server/up/up_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "drive/health.h"

namespace cairn::server {

using arbiter::DriveView;
using arbiter::VolumeView;
using drive::Health;

namespace {

std::string copies(uint64_t extents) {
  return extents == 1 ? "1 extent" : fmt::format("{} extents", extents);
}

// What a layer of a volume says of itself, where the server has made an event of it.
Condition of_layer(const ServedDrive& served, const drive::WatchedDrive& health,
                   const drive::HealthReason& reason) {
  const std::string place = reason.below.empty() ? reason.path : reason.below_path;
  Condition condition{.health = std::min(reason.health, health.now.health),
                      .code = reason.code,
                      .kind = "volume",
                      .subject = served.name,
                      .place = place,
                      .what = reason.what,
                      .action = fmt::format("cairn drive show {}", served.name),
                      .is_told = true};
  for (const drive::WatchedJob& job : health.jobs) {
    if (job.job.path != reason.path || condition.percent) continue;
    condition.percent = job.percent;
    condition.time_left = job.left;
  }
  return condition;
}

}  // namespace

// Those that the folder has now.
void UpHealth::look_at_drives(std::vector<Condition>& all) const {
  for (const UpDrive& drive : folder_.identity().drives) {
    if (keeper_.has_failed(drive)) {
      all.push_back({.code = "drive_failed",
                     .kind = "drive",
                     .subject = drive.name,
                     .what = "it failed, and what was on it is lost; another one takes its place "
                             "soon",
                     .action = pool_list()});
      continue;
    }
    const std::string uri = keeper_.uri_of(drive);
    const bool is_member = std::ranges::any_of(
        keeper_.seen().pool.drives, [&](const DriveView& each) { return each.info.uri == uri; });
    if (is_member) continue;
    all.push_back({.code = "drive_new",
                   .kind = "drive",
                   .subject = drive.name,
                   .what = "it is new, and joins the pool",
                   .action = pool_list()});
  }
}

void UpHealth::look_at_lost(std::vector<Condition>& all) const {
  for (const DriveView& drive : keeper_.seen().pool.drives) {
    if (!keeper_.is_lost(drive)) continue;
    all.push_back({.code = "drive_lost",
                   .kind = "drive",
                   .subject = keeper_.name_of(drive),
                   .place = fmt::to_string(drive.info.id.value()),
                   .what = fmt::format("it is lost: {} that it had get another copy elsewhere",
                                       copies(drive.legs)),
                   .action = pool_list(),
                   .left = drive.legs});
  }
  if (keeper_.seen().stuck.empty()) return;
  all.push_back({.code = "drive_stuck",
                 .kind = "pool",
                 .subject = "pool",
                 .what = keeper_.seen().stuck,
                 .action = "cairn pool show" + arbiter_option_});
}

// The arbiter has made events of these.
void UpHealth::look_at_volumes(std::vector<Condition>& all) const {
  for (const VolumeView& volume : keeper_.seen().volumes) {
    if (volume.lacking == 0 || volume.record.is_leaving) continue;
    all.push_back(
        {.code = "replicas_missing",
         .kind = "volume",
         .subject = volume.record.name,
         .what = fmt::format("{} of {} have fewer copies than {}, and get them back by "
                             "themselves",
                             copies(volume.lacking), volume.mapped, volume.record.replicas),
         .action = volume_show(volume.record.name),
         .left = volume.lacking,
         .is_told = true});
  }
}

void UpHealth::look_at_doors(std::vector<Condition>& all) const {
  if (!keeper_.seen().problem.empty()) {
    all.push_back({.health = Health::kFailing,
                   .code = "arbiter_away",
                   .kind = "arbiter",
                   .subject = "arbiter",
                   .what = fmt::format("it cannot be asked: {}", keeper_.seen().problem),
                   .action = "cairn arbiter status" + arbiter_option_});
  }
  if (!serves_keys_) {
    all.push_back({.health = Health::kFailing,
                   .code = "keys_not_served",
                   .kind = "volume",
                   .subject = kUpKeyVolume,
                   .what = "keys and values are not served",
                   .action = volume_show(kUpKeyVolume)});
  }
  if (server_ == nullptr) {
    all.push_back({.health = Health::kFailing,
                   .code = "not_open",
                   .kind = "volume",
                   .subject = kUpVolume,
                   .what = "it is not open",
                   .action = volume_show(kUpVolume)});
  }
}

void UpHealth::look_at_layers(std::vector<Condition>& all) const {
  if (server_ == nullptr) return;
  for (const auto& served : server_->drives()) {
    const drive::WatchedDrive* const health = server_->health(*served);
    if (health == nullptr) continue;
    for (const drive::HealthReason& each : health->now.reasons) {
      // Of lacking copies the arbiter knows more, and of all volumes.
      if (each.code != "replicas_missing") all.push_back(of_layer(*served, *health, each));
    }
  }
}

const std::vector<KnownCondition>& UpHealth::look() {
  std::vector<Condition> all;
  look_at_doors(all);
  look_at_layers(all);
  look_at_drives(all);
  look_at_lost(all);
  look_at_volumes(all);
  return conditions_.take_in(std::move(all));
}

Json UpHealth::drives_json() const {
  Json drives = Json::array();
  for (const UpDrive& drive : folder_.identity().drives) {
    Json one = {{"name", drive.name},
                {"file", folder_.drive_path(drive)},
                {"state", keeper_.has_failed(drive) ? "failed" : "new"},
                {"bytes", folder_.identity().drive_bytes}};
    for (const DriveView& each : keeper_.seen().pool.drives) {
      if (each.info.uri != keeper_.uri_of(drive) || keeper_.has_failed(drive)) continue;
      one["state"] = "ok";
      one["pool_id"] = each.info.id.value();
      one["used_bytes"] = each.legs * keeper_.seen().pool.extent_bytes;
    }
    drives.push_back(std::move(one));
  }
  return drives;
}

Json UpHealth::volumes_json() const {
  Json volumes = Json::array();
  for (const VolumeView& each : keeper_.seen().volumes) {
    if (each.record.is_snapshot) continue;
    volumes.push_back({{"name", each.record.name},
                       {"bytes", each.bytes},
                       {"replicas", each.record.replicas},
                       {"mapped_bytes", each.mapped * each.extent_bytes},
                       {"lacking_bytes", each.lacking * each.extent_bytes}});
  }
  return volumes;
}

Json UpHealth::json() {
  Json reasons = Json::array();
  for (const KnownCondition& each : look()) {
    Json one = condition_json(env_, each);
    if (each.now.kind == "drive") one["drive"] = each.now.subject;
    if (each.now.kind == "volume") one["volume"] = each.now.subject;
    reasons.push_back(std::move(one));
  }
  return {{"health", drive::name(conditions_.worst())},
          {"reasons", std::move(reasons)},
          {"drives", drives_json()},
          {"volumes", volumes_json()}};
}

}  // namespace cairn::server
