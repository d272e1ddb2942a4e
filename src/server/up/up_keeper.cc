// SPDX-License-Identifier: Apache-2.0
#include "server/up/up_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <variant>

#include "base/words.h"
#include "task/deadline.h"

namespace cairn::server {

using arbiter::DriveView;
using task::Task;

namespace {

constexpr Duration kLook = 500_ms;
constexpr Duration kCall = 5_s;
// A file without holes is cleared block by block.
constexpr Duration kAddCall = 600_s;
// How long a drive's place is empty: long enough to be seen.
constexpr Duration kAway = 3_s;
// What fails together with the drives: this machine.
constexpr const char* kBoxName = "up";

}  // namespace

std::string up_box_nqn(const UpIdentity& identity) {
  return fmt::format("nqn.2026-11.io.cairn:up-{}-drives", identity.id);
}

nvme::NamespaceOptions up_space(const UpFolder& folder, const UpDrive& drive) {
  nvme::NamespaceOptions space{.nsid = drive.nsid, .name = drive.name};
  space.drive = {.kind = drive::Spec::Kind::kFile,
                 .path = folder.drive_path(drive),
                 .size = folder.identity().drive_bytes,
                 .direct = folder.has_direct_access()};
  space.uuid = drive.uuid;
  space.nguid = drive.uuid;
  return space;
}

UpKeeper::UpKeeper(env::Env& env, UpFolder& folder, Server& box,
                   std::unique_ptr<arbiter::RemoteArbiter> arbiter, Log log)
    : env_(env), folder_(folder), box_(box), arbiter_(std::move(arbiter)), log_(std::move(log)) {}

template <class T>
Task<Attempt<T>> UpKeeper::ask(arbiter::CallArgs request) {
  const bool is_long = std::holds_alternative<arbiter::AddArgs>(request);
  task::Deadline deadline(env_, env_.now() + (is_long ? kAddCall : kCall), stop_.token());
  arbiter::RemoteArbiter::Said<T> said =
      co_await arbiter_->ask<T>(std::move(request), deadline.token());
  if (!said) co_return refuse(said.error().text);
  if constexpr (std::is_void_v<T>) {
    co_return Attempt<T>();
  } else {
    co_return std::move(*said);
  }
}

bool UpKeeper::is_ours(const std::string& uri) const {
  const UpIdentity& identity = folder_.identity();
  return uri.starts_with(fmt::format("nvme-tcp://{}/{}?nsid=", identity.box, up_box_nqn(identity)));
}

std::string UpKeeper::uri_of(const UpDrive& drive) const {
  const UpIdentity& identity = folder_.identity();
  return fmt::format("nvme-tcp://{}/{}?nsid={}", identity.box, up_box_nqn(identity), drive.nsid);
}

bool UpKeeper::is_lost(const DriveView& drive) const {
  if (!is_ours(drive.info.uri)) return false;
  return std::ranges::none_of(folder_.identity().drives,
                              [&](const UpDrive& each) { return uri_of(each) == drive.info.uri; });
}

std::string UpKeeper::name_of(const DriveView& drive) const {
  for (const UpDrive& each : folder_.identity().drives) {
    if (uri_of(each) == drive.info.uri) return each.name;
  }
  for (const auto& [uri, name] : former_) {
    if (uri == drive.info.uri) return name;
  }
  return is_ours(drive.info.uri) ? fmt::format("#{}", drive.info.id.value()) : "";
}

bool UpKeeper::has_failed(const UpDrive& drive) const {
  return std::ranges::any_of(failed_, [&](size_t index) {
    return folder_.identity().drives.at(index).name == drive.name;
  });
}

Task<Attempt<void>> UpKeeper::look() {
  Attempt<arbiter::PoolView> pool = co_await ask<arbiter::PoolView>(arbiter::PoolRequest{});
  if (!pool) co_return std::unexpected(pool.error());
  // After the pool: what has left a drive by then is counted as lacking a replica here.
  std::vector<arbiter::VolumeView> volumes;
  for (bool more = true; more;) {
    Attempt<arbiter::VolumePage> page = co_await ask<arbiter::VolumePage>(
        arbiter::VolumesRequest{.after = volumes.empty() ? "" : volumes.back().record.name});
    if (!page) co_return std::unexpected(page.error());
    more = page->more && !page->volumes.empty();
    std::ranges::move(page->volumes, std::back_inserter(volumes));
  }
  seen_.pool = std::move(*pool);
  seen_.volumes = std::move(volumes);
  co_return Attempt<void>();
}

Task<Attempt<void>> UpKeeper::add_drives() {
  const std::array<UpDrive, kUpDrives> drives = folder_.identity().drives;  // one may be replaced
  for (const UpDrive& drive : drives) {
    const std::string uri = uri_of(drive);
    const bool is_member = std::ranges::any_of(
        seen_.pool.drives, [&](const DriveView& each) { return each.info.uri == uri; });
    if (is_member || has_failed(drive)) continue;
    const Attempt<volume::MegaVolInfo> added = co_await ask<volume::MegaVolInfo>(
        arbiter::AddArgs{.uri = uri, .box = kBoxName, .rack = "", .may_format = false});
    if (!added) {
      co_return refuse(
          fmt::format("drive {} does not join the pool: {}", drive.name, added.error().text));
    }
    if (log_ && !seen_.pool.drives.empty()) {
      log_(config::LogLevel::kInfo, fmt::format("drive {} joined the pool", drive.name));
    }
  }
  co_return Attempt<void>();
}

Task<Attempt<void>> UpKeeper::make_volumes() {
  const uint64_t bytes = folder_.identity().drive_bytes;
  // A quarter is left: for volumes that users make, snapshots, and logs.
  for (const auto& [name, size] :
       {std::pair{kUpVolume, bytes / 2}, std::pair{kUpKeyVolume, bytes / 4}}) {
    const bool is_there = std::ranges::any_of(
        seen_.volumes, [&](const arbiter::VolumeView& each) { return each.record.name == name; });
    if (is_there) continue;
    const uint64_t whole = size / volume::kExtentBytes * volume::kExtentBytes;
    const Attempt<arbiter::VolumeView> made = co_await ask<arbiter::VolumeView>(
        arbiter::CreateArgs{.name = name, .bytes = whole, .replicas = kUpReplicas});
    if (!made) {
      co_return refuse(fmt::format("the volume {} cannot be made: {}", name, made.error().text));
    }
  }
  co_return Attempt<void>();
}

// Members whose drives are lost get nothing more, and leave when nothing is left on them.
Task<Attempt<void>> UpKeeper::give_up_lost() {
  Attempt<void> outcome;
  const std::vector<DriveView> drives = seen_.pool.drives;
  for (const DriveView& drive : drives) {
    if (!is_lost(drive)) continue;
    Attempt<void> done;
    if (!drive.info.is_leaving) {
      done = co_await ask<>(arbiter::DrainRequest{.id = drive.info.id, .is_leaving = true});
    }
    if (done && drive.legs == 0) {
      done = co_await ask<>(arbiter::RemoveRequest{.id = drive.info.id, .is_lost = true});
      if (done && log_) {
        log_(config::LogLevel::kInfo,
             fmt::format("what was lost with drive {} is on others", name_of(drive)));
      }
    }
    if (!done && outcome) {
      outcome = refuse(fmt::format("what was lost with drive {} is not replaced: {}",
                                   name_of(drive), done.error().text));
    }
  }
  co_return outcome;
}

Task<Attempt<void>> UpKeeper::begin() {
  Attempt<void> done = co_await look();
  if (done) done = co_await add_drives();
  if (done) done = co_await make_volumes();
  if (done) done = co_await look();
  co_return done;
}

void UpKeeper::start() { gate_.spawn(look_always()); }

Task<void> UpKeeper::look_always() {
  std::string told;
  while (!stop_.requested()) {
    Attempt<void> done = co_await look();
    if (stop_.requested()) break;
    seen_.problem = done ? "" : done.error().text;
    if (done) {
      done = co_await add_drives();
      const Attempt<void> left = co_await give_up_lost();
      if (done) done = left;
      seen_.stuck = done ? "" : done.error().text;
      if (!seen_.stuck.empty() && seen_.stuck != told && log_ && !stop_.requested()) {
        log_(config::LogLevel::kWarn, seen_.stuck);
      }
      told = seen_.stuck;
    }
    const Result<void> slept = co_await task::sleep_for(env_, kLook, stop_.token());
    if (!slept) break;
  }
}

Task<Attempt<void>> UpKeeper::fail_drive(std::string name) {
  const auto& drives = folder_.identity().drives;
  const auto* const found = std::ranges::find(drives, name, &UpDrive::name);
  if (found == drives.end()) {
    std::vector<std::string> names;
    for (const UpDrive& each : drives) names.push_back(each.name);
    co_return refuse(
        fmt::format("there is no drive {}: the drives are {}", in_quotes(name), comma_list(names)));
  }
  if (has_failed(*found)) co_return refuse(fmt::format("drive {} has failed already", name));
  const auto index = static_cast<size_t>(found - drives.begin());
  failed_.push_back(index);
  former_.emplace_back(uri_of(*found), name);
  Attempt<void> done = co_await box_.remove_drive(name);
  if (done) done = folder_.replace_drive(index);
  if (!done) {
    std::erase(failed_, index);
    co_return done;
  }
  gate_.spawn(put_back(index));
  co_return done;
}

Task<void> UpKeeper::put_back(size_t index) {
  Duration pause = kAway;
  while (!stop_.requested()) {
    const Result<void> slept = co_await task::sleep_for(env_, pause, stop_.token());
    if (!slept) break;
    const UpDrive drive = folder_.identity().drives.at(index);
    const Attempt<ServedDrive*> added =
        co_await box_.add_drive(up_box_nqn(folder_.identity()), up_space(folder_, drive));
    if (added) {
      std::erase(failed_, index);
      break;
    }
    if (log_) {
      log_(config::LogLevel::kWarn,
           fmt::format("no new drive {}: {}", drive.name, added.error().text));
    }
    pause = 10_s;
  }
}

Task<void> UpKeeper::close() {
  stop_.request();
  co_await gate_.close();
  co_await arbiter_->disconnect();
}

}  // namespace cairn::server
