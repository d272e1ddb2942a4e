// SPDX-License-Identifier: Apache-2.0
#include "server/up/up_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "drive/health.h"
#include "server/control/health_json.h"

namespace cairn::server {

using arbiter::DriveView;
using arbiter::VolumeView;
using drive::Health;

namespace {

std::string copies(uint64_t extents) {
  return extents == 1 ? "1 extent" : fmt::format("{} extents", extents);
}

}  // namespace

void UpHealth::add(UpReason reason) {
  Known& known = known_
                     .try_emplace(fmt::format("{} {} {}", reason.code, reason.drive, reason.volume),
                                  Known{.since = env_.now()})
                     .first->second;
  known.is_there = true;
  if (reason.left) {
    known.most = std::max(known.most, *reason.left);
    if (known.most > 0) reason.percent = 100 - *reason.left * 100 / known.most;
  }
  reason.since = known.since;
  reasons_.push_back(std::move(reason));
}

// Those that the folder has now.
void UpHealth::look_at_drives() {
  for (const UpDrive& drive : folder_.identity().drives) {
    if (keeper_.has_failed(drive)) {
      add({.code = "drive_failed",
           .drive = drive.name,
           .what = "the drive failed, and what was on it is lost; another one takes its place soon",
           .command = "cairn pool list"});
      continue;
    }
    const std::string uri = keeper_.uri_of(drive);
    const bool is_member = std::ranges::any_of(
        keeper_.seen().pool.drives, [&](const DriveView& each) { return each.info.uri == uri; });
    if (is_member) continue;
    add({.code = "drive_new",
         .drive = drive.name,
         .what = "the drive is new, and joins the pool",
         .command = "cairn pool list"});
  }
}

void UpHealth::look_at_lost() {
  for (const DriveView& drive : keeper_.seen().pool.drives) {
    if (!keeper_.is_lost(drive)) continue;
    add({.code = "drive_lost",
         .drive = keeper_.name_of(drive),
         .what = fmt::format("a drive is lost: {} that it had get another copy elsewhere",
                             copies(drive.legs)),
         .command = fmt::format("cairn pool list"),
         .left = drive.legs});
  }
  if (keeper_.seen().stuck.empty()) return;
  add({.code = "drive_stuck", .what = keeper_.seen().stuck, .command = "cairn pool show"});
}

void UpHealth::look_at_volumes() {
  for (const VolumeView& volume : keeper_.seen().volumes) {
    if (volume.lacking == 0 || volume.record.is_leaving) continue;
    add({.code = "replicas_missing",
         .volume = volume.record.name,
         .what = fmt::format("{} of {} have fewer copies than {}, and get them back by themselves",
                             copies(volume.lacking), volume.mapped, volume.record.replicas),
         .command = fmt::format("cairn volume show {}", volume.record.name),
         .left = volume.lacking});
  }
}

void UpHealth::look_at_doors() {
  if (!keeper_.seen().problem.empty()) {
    add({.health = Health::kFailing,
         .code = "arbiter_away",
         .what = fmt::format("the arbiter cannot be asked: {}", keeper_.seen().problem),
         .command = "cairn arbiter status"});
  }
  if (!serves_keys_) {
    add({.health = Health::kFailing,
         .code = "keys_not_served",
         .volume = kUpKeyVolume,
         .what = "keys and values are not served yet",
         .command = fmt::format("cairn volume show {}", kUpKeyVolume)});
  }
  if (server_ == nullptr) {
    add({.health = Health::kFailing,
         .code = "not_open",
         .volume = kUpVolume,
         .what = "the volume is not open yet",
         .command = fmt::format("cairn volume show {}", kUpVolume)});
    return;
  }
  for (const auto& served : server_->drives()) {
    const drive::WatchedDrive* const health = server_->health(*served);
    if (health == nullptr) continue;
    for (const drive::HealthReason& each : health->now.reasons) {
      // Of lacking copies the arbiter knows more, and of all volumes.
      if (each.code == "replicas_missing") continue;
      add({.health = each.health,
           .code = std::string(each.code),
           .volume = served->name,
           .what = each.what,
           .command = fmt::format("cairn drive show {}", served->name)});
    }
  }
}

const std::vector<UpReason>& UpHealth::look() {
  reasons_.clear();
  for (auto& [key, known] : known_) known.is_there = false;
  look_at_doors();
  look_at_drives();
  look_at_lost();
  look_at_volumes();
  std::erase_if(known_, [](const auto& each) { return !each.second.is_there; });
  // The worst first, and otherwise in the order in which they were found.
  std::vector<UpReason> sorted;
  for (const Health health : {Health::kFailing, Health::kDegraded, Health::kOk}) {
    for (const UpReason& each : reasons_) {
      if (each.health == health) sorted.push_back(each);
    }
  }
  reasons_ = std::move(sorted);
  return reasons_;
}

Json UpHealth::json() {
  look();
  Json reasons = Json::array();
  const Time now = env_.now();
  for (const UpReason& each : reasons_) {
    Json one = {{"health", drive::name(each.health)}, {"code", each.code}};
    if (!each.drive.empty()) one["drive"] = each.drive;
    if (!each.volume.empty()) one["volume"] = each.volume;
    one["what"] = each.what;
    const Duration age = now - each.since;
    one["since"] = static_cast<uint64_t>((env_.wall_now().ns - age.ns) / 1'000'000'000);
    one["since_s"] = static_cast<uint64_t>(age / 1_s);
    if (each.percent) one["percent"] = *each.percent;
    one["command"] = each.command;
    reasons.push_back(std::move(one));
  }
  const Health worst = reasons_.empty() ? Health::kOk : reasons_.front().health;
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
  Json volumes = Json::array();
  for (const VolumeView& each : keeper_.seen().volumes) {
    if (each.record.is_snapshot) continue;
    volumes.push_back({{"name", each.record.name},
                       {"bytes", each.bytes},
                       {"replicas", each.record.replicas},
                       {"mapped_bytes", each.mapped * each.extent_bytes},
                       {"lacking_bytes", each.lacking * each.extent_bytes}});
  }
  return {{"health", drive::name(worst)},
          {"reasons", std::move(reasons)},
          {"drives", std::move(drives)},
          {"volumes", std::move(volumes)}};
}

}  // namespace cairn::server
