// SPDX-License-Identifier: Apache-2.0
// Doors for virtual machines that come and go while drives are served.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/words.h"
#include "server/serve/server.h"

namespace cairn::server {

namespace {

Attempt<env::Address> address_of(const std::string& socket) {
  Result<env::Address> address = env::Address::parse("unix:" + socket);
  if (address) return std::move(*address);
  return refuse(fmt::format("{} cannot be a socket: {}; take a shorter path", in_quotes(socket),
                            address.error().what()));
}

}  // namespace

task::Task<Attempt<void>> DriveServer::add_door(DoorKind kind, GuestArgs words) {
  const Result<void> mine = co_await changing_.acquire(1, env_.stop_token());
  if (!mine) co_return refuse("drives are not served any more");
  const task::Units held(changing_, 1);
  const Attempt<ServedDrive*> drive = find(words.drive);
  if (!drive) co_return std::unexpected(drive.error());
  const std::string socket = words.socket;
  const auto is_there = [&](const std::string& other) { return other == socket; };
  const bool is_taken = std::ranges::any_of(vfio_at_, is_there, &VfioController::socket) ||
                        std::ranges::any_of(drives_, [&](const ServedDrive& each) {
                          return each.vhost && is_there(each.vhost->at.path);
                        });
  if (is_taken) {
    co_return refuse(fmt::format("{} is a door already: take another socket, or remove it first",
                                 in_quotes(words.socket)));
  }
  Attempt<void> added;
  if (kind == DoorKind::kVfioUser) {
    added = co_await add_vfio((*drive)->name, std::move(words));
  } else {
    added = co_await add_vhost(**drive, std::move(words));
  }
  if (added && options_.door_changed) options_.door_changed(socket, true);
  co_return added;
}

task::Task<void> DriveServer::expect_other_writers(const ServedDrive& drive) {
  const Result<void> at_nbd = co_await nbd_.expect_other_writers(drive.name);
  CHECK(at_nbd.has_value(), "every drive is an export");
  if (!drive.vhost) co_return;
  const Result<void> at_vhost = co_await vhost_.expect_other_writers(drive.name);
  CHECK(at_vhost.has_value(), "a drive with a socket is served there");
}

task::Task<Attempt<void>> DriveServer::add_vfio(std::string drive, GuestArgs words) {
  const Attempt<env::Address> at = address_of(words.socket);
  if (!at) co_return std::unexpected(at.error());
  const VfioController controller{.socket = std::move(words.socket),
                                  .drives = {drive},
                                  .nqn = fmt::format("{}:{}", options_.nqn(), drive),
                                  .pace = words.waiting};
  const Attempt<ServedDrive*> served = find(drive);
  if (!served) co_return std::unexpected(served.error());
  co_await expect_other_writers(**served);
  Attempt<void> done;
  if (box_ == nullptr) {
    done = co_await open_box();
    if (!done) {
      co_await box_->close();
      box_.reset();
      co_return done;
    }
  }
  done = co_await add_subsystem_of(controller);
  if (!done) co_return done;
  if (vfio_ == nullptr) vfio_ = std::make_unique<VfioDoor>(env_, box_->registry(), options_.log);
  done = co_await vfio_->open({controller});
  if (done) vfio_at_.push_back(controller);
  co_return done;
}

task::Task<Attempt<void>> DriveServer::add_vhost(ServedDrive& drive, GuestArgs words) {
  if (drive.vhost) {
    co_return refuse(
        fmt::format("{} is at {} already, and a drive has one vhost-user door: remove that first, "
                    "with 'cairn drive door remove {} --vhost-user {}'",
                    drive.name, in_quotes(drive.vhost->at.path), drive.name, drive.vhost->at.path));
  }
  Attempt<env::Address> at = address_of(words.socket);
  if (!at) co_return std::unexpected(at.error());
  co_await expect_other_writers(drive);
  const GuestSocket socket{.drive = drive.name, .at = std::move(*at), .waiting = words.waiting};
  const Attempt<void> served = co_await serve_vhost(drive, socket);
  if (served) drive.vhost = socket;
  co_return served;
}

task::Task<Attempt<void>> DriveServer::remove_door(DoorKind kind, GuestArgs words, Time until) {
  const Result<void> mine = co_await changing_.acquire(1, env_.stop_token());
  if (!mine) co_return refuse("drives are not served any more");
  const task::Units held(changing_, 1);
  const Attempt<ServedDrive*> drive = find(words.drive);
  if (!drive) co_return std::unexpected(drive.error());
  const std::string socket = words.socket;
  Attempt<void> removed;
  if (kind == DoorKind::kVfioUser) {
    removed = co_await remove_vfio(std::move(words.socket), until);
  } else {
    removed = co_await remove_vhost(**drive, std::move(words.socket), until);
  }
  if (removed && options_.door_changed) options_.door_changed(socket, false);
  co_return removed;
}

task::Task<Attempt<void>> DriveServer::remove_vfio(std::string socket, Time until) {
  const auto found = std::ranges::find(vfio_at_, socket, &VfioController::socket);
  if (found == vfio_at_.end()) {
    std::vector<std::string> sockets;
    sockets.reserve(vfio_at_.size());
    for (const VfioController& each : vfio_at_) sockets.push_back(each.socket);
    co_return refuse(fmt::format("no vfio-user door is at {}{}", in_quotes(socket),
                                 did_you_mean(socket, sockets)));
  }
  const std::string nqn = std::move(found->nqn);
  vfio_at_.erase(found);
  const Result<void> removed = co_await vfio_->server().remove(socket, until);
  CHECK(removed.has_value(), "doors are removed one at a time");
  const bool is_used = nqn == options_.nqn() ||
                       std::ranges::find(vfio_at_, nqn, &VfioController::nqn) != vfio_at_.end();
  if (is_used) co_return Attempt<void>();
  const Result<void> gone = co_await box_->registry().remove_subsystem(nqn);
  if (!gone) co_return refuse(gone.error().text());
  co_return Attempt<void>();
}

task::Task<Attempt<void>> DriveServer::remove_vhost(ServedDrive& drive, std::string socket,
                                                    Time until) {
  if (!drive.vhost || drive.vhost->at.path != socket) {
    co_return refuse(fmt::format(
        "{} has no vhost-user door at {}{}", drive.name, in_quotes(socket),
        drive.vhost ? fmt::format(", it is at {}", drive.vhost->at.path) : std::string()));
  }
  drive.vhost.reset();
  const Result<void> removed = co_await vhost_.remove(drive.name, until);
  CHECK(removed.has_value(), "doors are removed one at a time");
  co_return Attempt<void>();
}

}  // namespace cairn::server
