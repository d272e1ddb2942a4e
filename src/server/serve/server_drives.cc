// SPDX-License-Identifier: Apache-2.0
// Drives that come, go and change their size while they are served.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error_text.h"
#include "base/units.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "server/common/advice.h"
#include "server/control/health_json.h"
#include "server/open/take_drive.h"
#include "server/serve/server.h"

namespace cairn::server {

std::optional<nvme::NamespaceInfo> Server::info(const ServedDrive& drive) const {
  for (nvme::NamespaceInfo& each : nvme_.registry().namespaces(drive.nqn)) {
    if (each.options.nsid == drive.space.nsid) return std::move(each);
  }
  return std::nullopt;
}

// A file may have another size than its text: it keeps its own.
void Server::note_size(const ServedDrive& drive) {
  const uint64_t said = drive.space.drive.size;
  const std::optional<nvme::NamespaceInfo> now = info(drive);
  if (said == 0 || !now || now->geometry.bytes() <= said) return;
  hooks_.say(
      config::LogLevel::kInfo,
      fmt::format("drive {} has {}, and its line says size={}: it keeps what its file has",
                  drive.name, drive::size_text(now->geometry.bytes()), drive::size_text(said)));
}

// With the reservations it had before the restart.
task::Task<Attempt<void>> Server::open_drive(ServedDrive& drive, std::string typed, bool format) {
  nvme::NamespaceOptions& space = drive.space;
  if (reservations_) {
    Result<std::vector<std::byte>> kept = co_await reservations_->load(drive.nqn, space.nsid);
    if (!kept) {
      drive.problem = fmt::format(
          "the reservations of namespace {} of {} cannot be read from {}: {}: restore the file "
          "from a copy, or move it away to start without them",
          space.nsid, drive.nqn, in_quotes(reservations_->path(drive.nqn, space.nsid)),
          kept.error().text());
      co_return refuse(drive.problem);
    }
    space.reservations = std::move(*kept);
  }
  Attempt<void> opened = co_await drives_.open(drive, std::move(typed), format);
  if (opened) opened = co_await attach(drive);
  space.reservations.clear();
  drive.problem = opened ? "" : opened.error().text;
  if (opened) note_size(drive);
  co_return opened;
}

// It is open: hosts see it when this is done.
task::Task<Attempt<void>> Server::attach(ServedDrive& drive) {
  Result<uint32_t> added = co_await registry().add_namespace(drive.nqn, drive.space);
  if (!added && added.error() == Errc::kMismatch) {
    // Another drive has the number now: what was reserved was not this one.
    hooks_.say(config::LogLevel::kInfo,
               fmt::format("namespace {} of {} is another one than before: it starts without "
                           "reservations",
                           drive.space.nsid, drive.nqn));
    drive.space.reservations.clear();
    added = co_await registry().add_namespace(drive.nqn, drive.space);
  }
  if (!added) co_return std::unexpected(cannot_serve(drive.space, added.error()));
  if (const std::optional<nvme::NamespaceInfo> now = info(drive)) {
    drive.space.uuid = now->options.uuid;
    drive.space.nguid = now->options.nguid;
  }
  co_return Attempt<void>();
}

task::Task<Attempt<void>> Server::reopen_drive(std::string name) {
  Attempt<void> opened;
  {
    const Attempt<Turn> turn = co_await take_turn_of(std::move(name));
    if (!turn) co_return std::unexpected(turn.error());
    ServedDrive& drive = *turn->drive;
    if (drive.problem.empty()) co_return Attempt<void>();
    opened = co_await open_drive(drive, "", false);
    if (opened) opened = co_await doors_.opened(drive);
  }
  co_await drives_.look_now();
  co_return opened;
}

Attempt<void> Server::check_new(const std::string& nqn, const nvme::NamespaceOptions& space) const {
  for (const auto& other : drives_.all()) {
    if (other->nqn == nqn && other->space.nsid == space.nsid && !other->problem.empty()) {
      return refuse(
          fmt::format("namespace {} of {} is there, and its drive could not be opened ({}): try it "
                      "again with 'cairn drive retry {}', or remove it first",
                      space.nsid, nqn, last_line(other->problem), other->name));
    }
    if (other->nqn == nqn && other->space.nsid == space.nsid) {
      return refuse(fmt::format("namespace {} of {} is drive {}: the namespace id is in use",
                                space.nsid, nqn, other->name));
    }
    if (other->name == space.name) {
      return refuse(fmt::format("a drive named {} is served here: write another NAME=DRIVE",
                                in_quotes(space.name)));
    }
  }
  return {};
}

task::Task<Attempt<ServedDrive*>> Server::serve_added(std::string nqn, nvme::NamespaceOptions space,
                                                      bool format) {
  const bool is_counted = space.nsid == 0;
  if (is_counted) space.nsid = next_nsid(nqn);
  if (space.name.empty()) {
    const bool is_first = nqn == options_.subsystems.front().options.nqn;
    space.name = drives_.free_name(nqn, space.nsid, is_first);
  }
  if (const Attempt<void> is_new = check_new(nqn, space); !is_new) {
    co_return std::unexpected(is_new.error());
  }
  ServedDrive& drive = drives_.add(nqn, std::move(space));
  Attempt<void> served = co_await drives_.open(drive, "", format);
  if (served) served = co_await attach(drive);
  if (served) served = co_await doors_.add(drive);
  if (!served) {
    const Result<void> undone = co_await registry().remove_namespace(nqn, drive.space.nsid);
    (void)undone;  // it may not be there
    co_await drive.users->close();
    co_await drives_.remove(drive);
    co_return std::unexpected(served.error());
  }
  SubsystemChanges& changes = changes_[nqn];
  nvme::NamespaceOptions& added = changes.added[drive.space.nsid];
  added = drive.space;
  added.source = nullptr;
  changes.last_nsid = is_counted ? drive.space.nsid : std::max(changes.last_nsid, drive.space.nsid);
  drives_.watch();
  co_return &drive;
}

task::Task<Attempt<ServedDrive*>> Server::add_drive(std::string nqn, nvme::NamespaceOptions space,
                                                    bool format) {
  const Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  const Attempt<ServedDrive*> drive = co_await serve_added(turn->nqn, std::move(space), format);
  if (!drive) co_return drive;
  const Attempt<void> kept =
      keep(fmt::format("drive {} is added as namespace {} of {}: {}", (*drive)->name,
                       (*drive)->space.nsid, turn->nqn, (*drive)->text));
  if (!kept) co_return std::unexpected(kept.error());
  co_return drive;
}

task::Task<void> Server::stop_serving(ServedDrive& drive) {
  co_await drive.users->close();
  co_await doors_.remove(drive);
  const Result<void> removed = co_await registry().remove_namespace(drive.nqn, drive.space.nsid);
  (void)removed;  // it is not there if its drive is not open
  if (reservations_) {
    const Result<void> forgotten = co_await reservations_->forget(drive.nqn, drive.space.nsid);
    if (!forgotten) {
      hooks_.say(
          config::LogLevel::kWarn,
          fmt::format("reservations stay in {}: {}",
                      reservations_->path(drive.nqn, drive.space.nsid), forgotten.error().text()));
    }
  }
  co_await drives_.remove(drive);
}

task::Task<void> Server::stop_serving(std::string nqn, uint32_t nsid) {
  ServedDrive* const drive = drives_.find(nqn, nsid);
  if (drive != nullptr) co_await stop_serving(*drive);
}

task::Task<Attempt<void>> Server::remove_drive(std::string name) {
  const Attempt<Turn> turn = co_await take_turn_of(std::move(name));
  if (!turn) co_return std::unexpected(turn.error());
  ServedDrive& drive = *turn->drive;
  Attempt<void> may = check_free(drive);
  if (may) may = doors_.check_removable(drive);
  if (!may) co_return may;
  const uint32_t nsid = drive.space.nsid;
  const std::string its_name = drive.name;
  co_await stop_serving(drive);
  SubsystemChanges& changes = changes_[turn->nqn];
  const bool was_added = changes.added.erase(nsid) > 0;
  changes.resized.erase(nsid);
  changes.edited.erase(nsid);
  changes.moved.erase(nsid);
  if (!was_added && configured_[turn->nqn].contains(nsid)) changes.removed.insert(nsid);
  co_return keep(
      fmt::format("drive {}, namespace {} of {}, is removed", its_name, nsid, turn->nqn));
}

task::Task<Attempt<void>> Server::resize_namespace(std::string nqn, uint32_t nsid, uint64_t bytes) {
  const Result<void> resized = co_await registry().resize_namespace(nqn, nsid, bytes);
  if (!resized) co_return refuse(error_text(resized.error()));
  co_return Attempt<void>();
}

// At every door that has it, or at none.
task::Task<Attempt<void>> Server::resize_at_every_door(ServedDrive& drive, uint64_t bytes) {
  const uint64_t before = info(drive)->geometry.bytes();
  std::vector<Doors::Resizing> doors = doors_.resizings_of(drive);
  doors.emplace_back([this, nqn = drive.nqn, nsid = drive.space.nsid](uint64_t size) {
    return resize_namespace(nqn, nsid, size);
  });
  size_t done = 0;
  Attempt<void> outcome;
  while (outcome && done < doors.size()) {
    outcome = co_await doors[done](bytes);
    if (outcome) ++done;
  }
  if (outcome) co_return outcome;
  std::string stuck;
  while (done > 0) {
    const Attempt<void> undone = co_await doors[--done](before);
    if (!undone) stuck = undone.error().text;
  }
  if (stuck.empty()) {
    co_return refuse(fmt::format("drive {} keeps its size: {}", drive.name, outcome.error().text));
  }
  co_return refuse(fmt::format("{}; and not every door has the old size again: {}. Serve {} anew",
                               outcome.error().text, stuck, drive.name));
}

// Whatever moment power fails at, the drive has at least the size that is kept: a growth is kept
// when it is on the disk, and what is to shrink is kept before it does.
task::Task<Attempt<void>> Server::resize_drive(std::string name, uint64_t bytes) {
  const Attempt<Turn> turn = co_await take_turn_of(std::move(name));
  if (!turn) co_return std::unexpected(turn.error());
  ServedDrive& drive = *turn->drive;
  if (Attempt<void> free = check_free(drive); !free) co_return free;
  if (!drive.problem.empty()) {
    co_return refuse(fmt::format("drive {} is not open: {}", drive.name, last_line(drive.problem)));
  }
  const SubsystemChanges before = changes_[turn->nqn];
  const bool shrinks = bytes < info(drive)->geometry.bytes();
  if (shrinks) {
    set_size(drive, bytes);
    if (const Attempt<void> kept = save(); !kept) {
      changes_[turn->nqn] = before;
      co_return refuse(fmt::format("drive {} keeps its size: {}", drive.name, kept.error().text));
    }
  }
  const Attempt<void> resized = co_await resize_at_every_door(drive, bytes);
  if (!resized) {
    changes_[turn->nqn] = before;
    std::string text = resized.error().text;
    if (const Attempt<void> kept = shrinks ? save() : Attempt<void>{}; !kept) {
      text +=
          fmt::format("; and {} is kept all the same: {}", text_bytes(bytes), kept.error().text);
    }
    co_return refuse(std::move(text));
  }
  set_size(drive, bytes);
  set_kept_size(drive.space, bytes);
  if (drive.stack() == nullptr) drive.text = drive.space.drive_text();
  co_return keep(fmt::format("drive {} has {} now", drive.name, text_bytes(bytes)));
}

task::Task<Attempt<void>> Server::add_door(GuestDoor kind, GuestArgs args) {
  const Attempt<Turn> turn = co_await take_turn_of(args.drive);
  if (!turn) co_return std::unexpected(turn.error());
  if (Attempt<void> free = check_free(*turn->drive); !free) co_return free;
  Attempt<void> added = co_await doors_.add_guest(kind, *turn->drive, std::move(args));
  co_return added;
}

task::Task<Attempt<void>> Server::remove_door(GuestDoor kind, GuestArgs args, Time until) {
  const Attempt<Turn> turn = co_await take_turn_of(args.drive);
  if (!turn) co_return std::unexpected(turn.error());
  Attempt<void> removed = co_await doors_.remove_guest(kind, *turn->drive, std::move(args), until);
  co_return removed;
}

}  // namespace cairn::server
