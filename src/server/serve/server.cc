// SPDX-License-Identifier: Apache-2.0
// From the configuration and what was kept to open doors, and the end.
#include "server/serve/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/uuid.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "server/open/take_drive.h"
#include "task/deadline.h"

namespace cairn::server {

namespace {

constexpr Duration kReopenFirst = 5_s;
constexpr Duration kReopenMax = 60_s;
// Of each queue at most, where virtual machines come: what their drivers usually take.
constexpr uint16_t kGuestQueueEntries = 1024;

// The nsids of a configuration: those that are given, and for the others the lowest that are free
// in their order. So they are the same at each start, whatever was added in between.
Attempt<void> number_namespaces(SubsystemConfig& subsystem) {
  std::set<uint32_t> taken;
  for (const nvme::NamespaceOptions& each : subsystem.namespaces) {
    if (each.nsid != 0 && !taken.insert(each.nsid).second) {
      return refuse(fmt::format("namespace {} of {} is there twice: give each its own nsid",
                                each.nsid, subsystem.options.nqn));
    }
  }
  uint32_t next = 1;
  for (nvme::NamespaceOptions& each : subsystem.namespaces) {
    if (each.nsid != 0) continue;
    while (!taken.insert(next).second) ++next;
    each.nsid = next;
  }
  return {};
}

// What a configured namespace became while it was served.
void apply_changes(const SubsystemChanges& changes, nvme::NamespaceOptions& space) {
  if (const auto edited = changes.edited.find(space.nsid); edited != changes.edited.end()) {
    space.drive = edited->second.drive;
    space.stack = edited->second.stack;
    space.uuid = edited->second.uuid;
    space.nguid = edited->second.nguid;
  }
  const auto resized = changes.resized.find(space.nsid);
  if (resized != changes.resized.end()) set_kept_size(space, resized->second);
}

// Its URI was read before it was kept.
std::unique_ptr<BoxPlace> place_of(const MovedLayers& moved) {
  const auto uri = fabric::Uri::parse(moved.uri);
  if (!uri) return nullptr;
  return std::make_unique<BoxPlace>(BoxPlace{.control = moved.control,
                                             .uri = *uri,
                                             .uuid = uuid_text(uri->uuid),
                                             .layers = moved.layers,
                                             .transfer_blocks = moved.transfer_blocks});
}

}  // namespace

Server::Server(env::Env& env, ServerOptions options, ServerChanges changes, ServerHooks hooks,
               DoorOptions doors)
    : env_(env),
      started_(env.now()),
      options_(std::move(options)),
      door_options_(std::move(doors)),
      changes_(std::move(changes)),
      hooks_(std::move(hooks)),
      strangers_(env, hooks_.log),
      drives_(env, hooks_),
      nvme_(env, options_, hooks_, strangers_),
      doors_(env, door_options_, options_, hooks_, drives_, nvme_, strangers_) {
  if (!options_.reservations.empty()) reservations_.emplace(env, options_.reservations);
}

task::Task<Attempt<void>> Server::open() {
  Attempt<void> done = add_subsystems();
  for (const SubsystemConfig& subsystem : options_.subsystems) {
    if (done) done = add_drives(subsystem);
  }
  if (done) done = name_drives();
  if (done) done = co_await open_drives();
  for (const SubsystemConfig& subsystem : options_.subsystems) {
    if (done) done = co_await set_ana_states(subsystem);
  }
  if (done) done = co_await nvme_.listen();
  if (done) done = co_await doors_.open();
  if (!done) co_return done;
  co_await drives_.look_now();
  if (has_failed()) reopening_.spawn(reopen_all());
  co_return done;
}

Attempt<void> Server::add_subsystems() {
  for (SubsystemConfig& subsystem : options_.subsystems) {
    if (Attempt<void> numbered = number_namespaces(subsystem); !numbered) return numbered;
    nvme::SubsystemOptions options = subsystem.options;
    const bool is_first = &subsystem == &options_.subsystems.front();
    if (is_first && !door_options_.vfio.empty()) options.queue_entries_max = kGuestQueueEntries;
    const auto change = changes_.find(options.nqn);
    if (change != changes_.end() && change->second.access) {
      options.allow_any_host = change->second.access->any;
      options.hosts = change->second.access->hosts;
    }
    if (reservations_) {
      options.keep_reservations = true;
      options.reservation_store = &*reservations_;
    }
    if (Attempt<void> added = nvme_.add_subsystem(subsystem, options); !added) return added;
  }
  for (const auto& [nqn, change] : changes_) {
    const bool known = std::ranges::any_of(
        options_.subsystems,
        [&nqn](const SubsystemConfig& each) { return each.options.nqn == nqn; });
    if (!known) {
      hooks_.say(config::LogLevel::kWarn,
                 fmt::format("changes are kept for {}, which is not served", nqn));
    }
  }
  return {};
}

// Who leaves a drive out of the command line does not get it from its edits: they are a change of
// something, and may be of no use without it.
void Server::tell_unconfigured(const SubsystemConfig& subsystem) {
  const std::string& nqn = subsystem.options.nqn;
  for (const auto& [nsid, edited] : changes_[nqn].edited) {
    if (configured_[nqn].contains(nsid)) continue;
    const std::string name = edited.name.empty() ? "" : edited.name + "=";
    hooks_.say(config::LogLevel::kWarn,
               fmt::format("namespace {} of {} was changed while it was served, and is not in the "
                           "configuration any more: it is not served; to have it, serve '{}{}'",
                           nsid, nqn, name, drive::with_size_texts(edited.drive_text())));
  }
}

Attempt<void> Server::add_drives(const SubsystemConfig& subsystem) {
  const std::string& nqn = subsystem.options.nqn;
  const SubsystemChanges& changes = changes_[nqn];
  std::vector<nvme::NamespaceOptions> all;
  for (nvme::NamespaceOptions each : subsystem.namespaces) {
    configured_[nqn].insert(each.nsid);
    if (changes.removed.contains(each.nsid)) {
      hooks_.say(config::LogLevel::kInfo,
                 fmt::format("namespace {} of {} stays removed", each.nsid, nqn));
      continue;
    }
    if (changes.added.contains(each.nsid)) {
      return refuse(
          fmt::format("namespace {} of {} is configured, and was added while the server ran: give "
                      "the configured one another nsid",
                      each.nsid, nqn));
    }
    apply_changes(changes, each);
    all.push_back(std::move(each));
  }
  for (const auto& [nsid, added] : changes.added) all.push_back(added);
  tell_unconfigured(subsystem);
  // Whom a namespace was given to, they alone see it.
  for (const auto& [id, contract] : changes.contracts) {
    const auto given = std::ranges::find(all, contract.nsid, &nvme::NamespaceOptions::nsid);
    if (given != all.end()) given->owner = contract.owner;
  }
  for (nvme::NamespaceOptions& each : all) {
    ServedDrive& drive = drives_.add(nqn, std::move(each));
    if (const auto moved = changes.moved.find(drive.space.nsid); moved != changes.moved.end()) {
      drive.moved = place_of(moved->second);
    }
  }
  return {};
}

// Those that have none get one that nobody else was given.
Attempt<void> Server::name_drives() {
  std::set<std::string_view> taken;
  for (const auto& drive : drives_.all()) {
    if (!drive->name.empty() && !taken.insert(drive->name).second) {
      return refuse(
          fmt::format("two drives are named {}: write another NAME=DRIVE", in_quotes(drive->name)));
    }
  }
  for (const auto& drive : drives_.all()) {
    if (!drive->name.empty()) continue;
    const bool is_first = drive->nqn == options_.subsystems.front().options.nqn;
    drive->name = drives_.free_name(drive->nqn, drive->space.nsid, is_first);
    drive->space.name = drive->name;
  }
  return {};
}

task::Task<Attempt<void>> Server::open_drives() {
  std::optional<Problem> first;
  bool serves_any = drives_.all().empty();
  for (const auto& drive : drives_.all()) {
    const auto typed = options_.typed.find(drive->text);
    const Attempt<void> opened = co_await open_drive(
        *drive, typed == options_.typed.end() ? "" : typed->second, options_.format);
    if (!opened && !first) first = opened.error();
    serves_any = serves_any || opened;
  }
  if (!serves_any) co_return std::unexpected(*first);
  co_return Attempt<void>();
}

task::Task<Attempt<void>> Server::set_ana_states(const SubsystemConfig& subsystem) {
  const std::string& nqn = subsystem.options.nqn;
  std::map<uint32_t, nvme::AnaState> states = changes_[nqn].ana;
  states.insert(subsystem.ana.begin(), subsystem.ana.end());  // where nothing was changed
  for (const auto& [group, state] : states) {
    Result<void> set = co_await registry().set_ana_state(nqn, group, state);
    if (!set) {
      co_return refuse(fmt::format("ANA group {} of {}: {}", group, nqn, set.error().text()));
    }
  }
  co_return Attempt<void>{};
}

bool Server::has_failed() const {
  return std::ranges::any_of(drives_.all(),
                             [](const auto& drive) { return !drive->problem.empty(); });
}

task::Task<void> Server::reopen_all() {
  Duration pause = kReopenFirst;
  while (has_failed()) {
    const Result<void> slept = co_await task::sleep_for(env_, pause, closing_.token());
    if (!slept) break;
    std::vector<std::string> failed;
    for (const auto& drive : drives_.all()) {
      if (!drive->problem.empty()) failed.push_back(drive->name);
    }
    for (const std::string& name : failed) {
      if (closing_.requested()) break;
      const Attempt<void> opened = co_await reopen_drive(name);
      (void)opened;  // its health says why not
    }
    pause = std::min(pause * 2, kReopenMax);
  }
}

task::Task<void> Server::close() {
  closing_.request();
  co_await reopening_.close();
  // Controllers of virtual machines go before the registry they are attached to.
  co_await doors_.close();
  co_await nvme_.close();
  co_await drives_.close();
}

task::Task<Attempt<task::Units>> Server::take_turn() {
  const Result<void> mine = co_await changing_.acquire(1, closing_.token());
  if (!mine) co_return refuse("drives are not served any more");
  co_return task::Units(changing_, 1);
}

task::Task<Attempt<Server::Turn>> Server::take_turn(std::string nqn) {
  Attempt<task::Units> held = co_await take_turn();
  if (!held) co_return std::unexpected(held.error());
  Attempt<std::string> found = nvme_.find(nqn);
  if (!found) co_return std::unexpected(found.error());
  co_return Turn{.held = std::move(*held), .nqn = std::move(*found)};
}

task::Task<Attempt<Server::Turn>> Server::take_turn_of(std::string drive) {
  Attempt<task::Units> held = co_await take_turn();
  if (!held) co_return std::unexpected(held.error());
  const Attempt<ServedDrive*> found = find(drive);
  if (!found) co_return std::unexpected(found.error());
  co_return Turn{.held = std::move(*held), .nqn = (*found)->nqn, .drive = *found};
}

}  // namespace cairn::server
