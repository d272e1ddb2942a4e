// SPDX-License-Identifier: Apache-2.0
// What people tell a snapshot drive. Each command changes the map and adds its record at one
// instant; the answer comes when the record is durable.
#include <fmt/format.h>

#include <utility>

#include "service/mapped/snapshot_drive.h"

namespace cairn::drive {

namespace {

constexpr std::string_view kCommands =
    "take [NAME], list, remove VERSION, remove clone:NAME, clone VERSION NAME, rollback VERSION";

std::unexpected<std::string> refuse(const Error& error) { return std::unexpected(error.text()); }

}  // namespace

task::Task<SnapshotDrive::Answer> SnapshotDrive::tell(std::vector<std::string> args) {
  if (!guard_.is_sound()) {
    const Result<void> mended = co_await guard_.mend({});
    if (!mended) co_return refuse(mended.error());
  }
  const MapGuard::Use use(guard_);
  co_return co_await obey(std::move(args));
}

task::Task<SnapshotDrive::Answer> SnapshotDrive::obey(std::vector<std::string> args) {
  const std::string_view verb = args.empty() ? std::string_view() : args[0];
  const size_t count = args.size();
  if (verb == "take" && count <= 2) co_return co_await take(count == 2 ? args[1] : "");
  if (verb == "list" && count == 1) co_return list();
  if (verb == "remove" && count == 2) co_return co_await remove(args[1]);
  if (verb == "clone" && count == 3) co_return co_await make_clone(args[1], args[2]);
  if (verb == "rollback" && count == 2) co_return co_await rollback(args[1]);
  co_return std::unexpected(fmt::format("a snapshot drive can be told: {}", kCommands));
}

task::Task<SnapshotDrive::Answer> SnapshotDrive::finish(std::string done) {
  const Result<void> committed = co_await commit({});
  if (committed) co_return done;
  co_return std::unexpected(
      fmt::format("{}, but a crash may undo it: {}", done, committed.error().text()));
}

// Writes that are on their way end first: they go to places that the version sees from then on.
// Its record becomes durable after all of its data.
task::Task<SnapshotDrive::Answer> SnapshotDrive::take(std::string name) {
  uint32_t version = 0;
  {
    Ranges::Hold all = hold_all();
    const Result<void> held = co_await all;
    if (!held) co_return refuse(held.error());
    const Result<uint32_t> taken = map_.take(name);
    if (!taken) co_return refuse(taken.error());
    version = *taken;
    record({.kind = SnapshotRecord::kTake}, name, Journal::Needs::kData, {});
  }
  co_return co_await finish(fmt::format("version {}", version));
}

std::string SnapshotDrive::list() const {
  std::string text;
  for (const auto& [version, name] : map_.versions()) {
    const bool is_open = open_versions_.contains(version);
    text += fmt::format("{}version {}{}{}{}", text.empty() ? "" : "\n", version,
                        name.empty() ? "" : " ", name, is_open ? " (in use)" : "");
  }
  for (const auto& [number, clone] : map_.clones()) {
    const bool is_open = open_clones_.contains(number);
    text += fmt::format("\nclone:{} of version {}{}", clone.name, clone.base,
                        is_open ? " (in use)" : "");
  }
  return text.empty() ? "no versions: take makes one" : text;
}

Result<void> SnapshotDrive::check_unused(uint32_t first, uint32_t last) const {
  const auto used = open_versions_.lower_bound(first);
  if (used == open_versions_.end() || used->first > last) return {};
  return fail(Errc::kDenied, "a version is in use and cannot go: close it first; version",
              static_cast<int32_t>(used->first));
}

task::Task<SnapshotDrive::Answer> SnapshotDrive::remove(std::string name) {
  constexpr std::string_view kClone = "clone:";
  VersionMap::Freed freed;
  if (name.starts_with(kClone)) {
    const Result<uint32_t> clone = map_.clone(std::string_view(name).substr(kClone.size()));
    if (!clone) co_return refuse(clone.error());
    if (open_clones_.contains(*clone)) {
      co_return std::unexpected("the clone is in use and cannot go: close it first");
    }
    const Result<void> dropped = map_.drop_clone(*clone, freed);
    if (!dropped) co_return refuse(dropped.error());
    record({.kind = SnapshotRecord::kDropClone, .number = *clone}, "", Journal::Needs::kNothing,
           freed);
    co_return co_await finish(fmt::format("removed {}", name));
  }
  const Result<uint32_t> version = map_.version(name);
  if (!version) co_return refuse(version.error());
  if (const Result<void> unused = check_unused(*version, *version); !unused) {
    co_return refuse(unused.error());
  }
  const Result<void> removed = map_.remove(*version, freed);
  if (!removed) co_return refuse(removed.error());
  record({.kind = SnapshotRecord::kRemove, .number = *version}, "", Journal::Needs::kNothing,
         freed);
  removed_ = std::max(removed_, *version);
  removal_ = journal_->added();
  co_return co_await finish(fmt::format("removed version {}", *version));
}

task::Task<SnapshotDrive::Answer> SnapshotDrive::make_clone(std::string version, std::string name) {
  const Result<uint32_t> base = map_.version(version);
  if (!base) co_return refuse(base.error());
  const Result<uint32_t> made = map_.make_clone(*base, name);
  if (!made) co_return refuse(made.error());
  record({.kind = SnapshotRecord::kMakeClone, .number = *base}, name, Journal::Needs::kNothing, {});
  co_return co_await finish(fmt::format("clone:{} of version {}", name, *base));
}

task::Task<SnapshotDrive::Answer> SnapshotDrive::rollback(std::string name) {
  uint32_t version = 0;
  {
    Ranges::Hold all = hold_all();
    const Result<void> held = co_await all;
    if (!held) co_return refuse(held.error());
    const Result<uint32_t> found = map_.version(name);
    if (!found) co_return refuse(found.error());
    version = *found;
    if (const Result<void> unused = check_unused(version + 1, UINT32_MAX); !unused) {
      co_return refuse(unused.error());
    }
    VersionMap::Freed freed;
    const Result<void> done = map_.rollback(version, freed);
    if (!done) co_return refuse(done.error());
    record({.kind = SnapshotRecord::kRollback, .number = version}, "", Journal::Needs::kNothing,
           freed);
  }
  co_return co_await finish(fmt::format("back at version {}", version));
}

}  // namespace cairn::drive
