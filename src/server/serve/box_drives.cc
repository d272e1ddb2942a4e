// SPDX-License-Identifier: Apache-2.0
// The drives of a box: opened at the start, or when they can be, resized, and looked at since.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error_text.h"
#include "base/units.h"
#include "base/words.h"
#include "server/common/advice.h"
#include "server/common/patience.h"
#include "server/control/health_json.h"
#include "server/serve/box.h"
#include "task/deadline.h"

namespace cairn::server {

namespace {

constexpr Duration kReopenFirst = 5_s;
constexpr Duration kReopenMax = 60_s;

std::string drive_name(std::string_view nqn, uint32_t nsid) {
  return fmt::format("{}/{}", nqn, nsid);
}

// What a namespace is called after it got another size: a stack's files have theirs by now.
void resize(nvme::NamespaceOptions& options, uint64_t bytes) {
  if (options.stack.empty()) {
    options.drive.size = bytes;
  } else if (const auto plan = StackPlan::prepare(options.stack, LookUp::kWhenOpened); plan) {
    options.stack = (*plan)->grown_text();
  }
}

}  // namespace

task::Task<Attempt<void>> Box::add_namespaces(const BoxSubsystem& subsystem) {
  const std::string& nqn = subsystem.options.nqn;
  const SubsystemChanges& changes = changes_[nqn];
  std::vector<nvme::NamespaceOptions> all;
  for (nvme::NamespaceOptions each : subsystem.namespaces) {
    configured_[nqn].insert(each.nsid);
    if (changes.removed.contains(each.nsid)) {
      log(config::LogLevel::kInfo, fmt::format("namespace {} of {} stays removed", each.nsid, nqn));
      continue;
    }
    if (changes.added.contains(each.nsid)) {
      co_return refuse(
          fmt::format("namespace {} of {} is configured, and was added while the box served: give "
                      "the configured one another nsid",
                      each.nsid, nqn));
    }
    const auto resized = changes.resized.find(each.nsid);
    if (resized != changes.resized.end()) resize(each, resized->second);
    all.push_back(std::move(each));
  }
  for (const auto& [nsid, added] : changes.added) all.push_back(added);
  // Whom a namespace was given to, they alone see it.
  for (const auto& [id, contract] : changes.contracts) {
    const auto given = std::ranges::find(all, contract.nsid, &nvme::NamespaceOptions::nsid);
    if (given != all.end()) given->owner = contract.owner;
  }
  for (nvme::NamespaceOptions& each : all) co_await add_or_remember(nqn, std::move(each));
  co_return Attempt<void>{};
}

task::Task<Result<uint32_t>> Box::add_patiently(const std::string& nqn,
                                                nvme::NamespaceOptions& options) {
  Result<uint32_t> added = 0;
  Patience patience(env_);
  for (bool again = true; again;) {
    added = co_await registry_.add_namespace(nqn, options);
    again = co_await patience.after(added);
  }
  if (!added && added.error() == Errc::kMismatch) {
    // Another drive has the number now: what was reserved was not this one.
    log(config::LogLevel::kInfo,
        fmt::format("namespace {} of {} is another one than before: it starts "
                    "without reservations",
                    options.nsid, nqn));
    options.reservations.clear();
    added = co_await registry_.add_namespace(nqn, options);
  }
  co_return added;
}

// With the reservations it had before the restart.
task::Task<Attempt<void>> Box::add_configured(const std::string& nqn,
                                              nvme::NamespaceOptions options) {
  if (reservations_) {
    Result<std::vector<std::byte>> kept = co_await reservations_->load(nqn, options.nsid);
    if (!kept) {
      co_return refuse(
          fmt::format("the reservations of namespace {} of {} cannot be read from {}: {}: restore "
                      "the file from a copy, or move it away to start without them",
                      options.nsid, nqn, in_quotes(reservations_->path(nqn, options.nsid)),
                      kept.error().text()));
    }
    options.reservations = std::move(*kept);
  }
  Attempt<std::unique_ptr<StackSource>> stack = co_await stacks_.open(options, options_.format);
  if (!stack) co_return std::unexpected(stack.error());
  const Result<uint32_t> added = co_await add_patiently(nqn, options);
  if (!added) {
    co_await stacks_.drop(std::move(*stack));
    co_return std::unexpected(cannot_serve(options, added.error()));
  }
  stacks_.keep(nqn, *added, std::move(*stack));
  note_size(nqn, *added, options.stack.empty() ? options.drive.size : 0);
  co_return Attempt<void>{};
}

task::Task<void> Box::add_or_remember(const std::string& nqn, nvme::NamespaceOptions options) {
  const std::pair name(nqn, options.nsid);
  const Attempt<void> added = co_await add_configured(nqn, options);
  if (added) {
    failed_.erase(name);
  } else {
    failed_[name] = {nqn, std::move(options), added.error().text};
  }
}

// A file may have grown, and power have failed before its new size was kept.
void Box::note_size(const std::string& nqn, uint32_t nsid, uint64_t said) {
  if (said == 0) return;
  for (const nvme::NamespaceInfo& each : registry_.namespaces(nqn)) {
    if (each.options.nsid != nsid || each.geometry.bytes() <= said) continue;
    log(config::LogLevel::kInfo,
        fmt::format("namespace {} of {} has {}, and {} was said: it keeps what its file has", nsid,
                    nqn, text_bytes(each.geometry.bytes()), text_bytes(said)));
  }
}

// Whoever calls it has the turn.
task::Task<Attempt<void>> Box::reopen(std::pair<std::string, uint32_t> name) {
  const auto failed = failed_.find(name);
  if (failed == failed_.end()) co_return Attempt<void>();
  const nvme::NamespaceOptions options = failed->second.options;
  co_await add_or_remember(name.first, options);
  const auto still = failed_.find(name);
  if (still == failed_.end()) co_return Attempt<void>();
  co_return refuse(still->second.problem);
}

task::Task<Attempt<void>> Box::reopen_namespace(std::string nqn, uint32_t nsid) {
  Attempt<void> opened;
  {
    const Attempt<Turn> turn = co_await take_turn(std::move(nqn));
    if (!turn) co_return std::unexpected(turn.error());
    const std::vector<nvme::NamespaceInfo> served = registry_.namespaces(turn->nqn);
    const bool is_served = std::ranges::any_of(
        served, [nsid](const nvme::NamespaceInfo& each) { return each.options.nsid == nsid; });
    if (is_served) co_return Attempt<void>();
    if (!failed_.contains({turn->nqn, nsid})) {
      co_return std::unexpected(no_such_namespace(turn->nqn, nsid));
    }
    opened = co_await reopen({turn->nqn, nsid});
  }
  co_await watch_.look();
  watch_.start();
  co_return opened;
}

task::Task<void> Box::reopen_given() {
  const Result<void> turn = co_await changing_.acquire(1, closing_.token());
  if (!turn) co_return;
  const task::Units held(changing_, 1);
  for (const NotServed& each : not_served()) {
    if (each.options.source == nullptr) continue;
    const Attempt<void> opened = co_await reopen({each.nqn, each.options.nsid});
    (void)opened;  // whoever handed it in knows whether it is open
  }
}

task::Task<void> Box::reopen_all() {
  Duration pause = kReopenFirst;
  while (!failed_.empty()) {
    const Result<void> slept = co_await task::sleep_for(env_, pause, closing_.token());
    if (!slept) break;
    for (const NotServed& each : not_served()) {
      if (each.options.source != nullptr || closing_.requested()) continue;
      const Attempt<void> opened = co_await reopen_namespace(each.nqn, each.options.nsid);
      (void)opened;  // its health says why not
    }
    pause = std::min(pause * 2, kReopenMax);
  }
}

std::vector<Box::NotServed> Box::not_served() const {
  std::vector<NotServed> all;
  for (const auto& [name, failed] : failed_) all.push_back(failed);
  return all;
}

const drive::WatchedDrive* Box::health(std::string_view nqn, uint32_t nsid) const {
  return watch_.find(drive_name(nqn, nsid));
}

task::Task<std::vector<drive::DriveHealth>> Box::look() {
  std::vector<drive::DriveHealth> all;
  const Result<void> turn = co_await changing_.acquire(1, closing_.token());
  if (!turn) co_return all;
  const task::Units held(changing_, 1);
  for (const auto& [name, failed] : failed_) {
    // Whoever handed the source in looks after it.
    if (failed.options.source != nullptr) continue;
    all.push_back({drive_name(name.first, name.second),
                   not_open(failed.problem,
                            fmt::format("it is tried again by itself, and at once with 'cairn box "
                                        "ns retry --nqn {} --nsid {}'",
                                        name.first, name.second))});
  }
  // A single drive that could not be opened, and now is, says nothing more of itself.
  for (const BoxSubsystem& subsystem : options_.subsystems) {
    for (const nvme::NamespaceInfo& each : registry_.namespaces(subsystem.options.nqn)) {
      std::string name = drive_name(subsystem.options.nqn, each.options.nsid);
      if (each.options.stack.empty() && watch_.find(name) != nullptr) {
        all.push_back({std::move(name), drive::StackHealth()});
      }
    }
  }
  std::vector<const StackSource*> stacks;
  std::vector<std::string> names;
  for (const auto& [name, stack] : stacks_.all()) {
    stacks.push_back(stack.get());
    names.push_back(drive_name(name.first, name.second));
  }
  std::vector<StackSource::Health> now = co_await StackSource::health_of(env_, std::move(stacks));
  for (size_t i = 0; i < now.size(); ++i) all.push_back({names[i], std::move(now[i])});
  co_return all;
}

void Box::set_size(const std::string& nqn, uint32_t nsid, uint64_t bytes) {
  SubsystemChanges& changes = changes_[nqn];
  const auto added = changes.added.find(nsid);
  if (added == changes.added.end()) {
    changes.resized[nsid] = bytes;
  } else {
    resize(added->second, bytes);
  }
}

// Whatever moment power fails at, the drive has at least the size that is kept: a growth is kept
// when it is on the disk, and what is to shrink is kept before it does.
task::Task<Attempt<void>> Box::resize_namespace(std::string nqn, uint32_t nsid, uint64_t bytes) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  if (Attempt<void> free = check_free(turn->nqn, nsid); !free) co_return free;
  if (const auto failed = failed_.find({turn->nqn, nsid}); failed != failed_.end()) {
    co_return refuse(fmt::format("namespace {} of {} is not open: {}", nsid, turn->nqn,
                                 last_line(failed->second.problem)));
  }
  const std::vector<nvme::NamespaceInfo> all = registry_.namespaces(turn->nqn);
  const auto space = std::ranges::find_if(
      all, [nsid](const nvme::NamespaceInfo& each) { return each.options.nsid == nsid; });
  if (space == all.end()) co_return std::unexpected(no_such_namespace(turn->nqn, nsid));
  const SubsystemChanges before = changes_[turn->nqn];
  const bool shrinks = bytes < space->geometry.bytes();
  if (shrinks) {
    set_size(turn->nqn, nsid, bytes);
    if (const Attempt<void> kept = save(); !kept) {
      changes_[turn->nqn] = before;
      co_return refuse(
          fmt::format("namespace {} of {} keeps its size: {}", nsid, turn->nqn, kept.error().text));
    }
  }
  const Result<void> resized = co_await registry_.resize_namespace(turn->nqn, nsid, bytes);
  if (!resized) {
    changes_[turn->nqn] = before;
    std::string text = fmt::format("namespace {} of {} keeps its size: {}", nsid, turn->nqn,
                                   error_text(resized.error()));
    if (const Attempt<void> kept = shrinks ? save() : Attempt<void>{}; !kept) {
      text +=
          fmt::format("; and {} is kept all the same: {}", text_bytes(bytes), kept.error().text);
    }
    co_return refuse(std::move(text));
  }
  set_size(turn->nqn, nsid, bytes);
  co_return keep(fmt::format("namespace {} of {} has {} now", nsid, turn->nqn, text_bytes(bytes)));
}

}  // namespace cairn::server
