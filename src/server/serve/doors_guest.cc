// SPDX-License-Identifier: Apache-2.0
// Doors for virtual machines that come and go while drives are served.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/words.h"
#include "server/serve/doors.h"

namespace cairn::server {

namespace {

Attempt<env::Address> address_of(const std::string& socket) {
  Result<env::Address> address = env::Address::parse("unix:" + socket);
  if (address) return std::move(*address);
  return refuse(fmt::format("{} cannot be a socket: {}; take a shorter path", in_quotes(socket),
                            address.error().what()));
}

}  // namespace

task::Task<Attempt<void>> Doors::add_guest(GuestDoor kind, ServedDrive& drive, GuestArgs args) {
  const std::string socket = args.socket;
  const auto is_there = [&](const std::string& other) { return other == socket; };
  const bool is_taken = std::ranges::any_of(vfio_at_, is_there, &VfioController::socket) ||
                        std::ranges::any_of(drives_.all(), [&](const auto& each) {
                          return each->vhost && is_there(each->vhost->at.path);
                        });
  if (is_taken) {
    co_return refuse(fmt::format("{} is a door already: take another socket, or remove it first",
                                 in_quotes(socket)));
  }
  Attempt<void> added;
  if (kind == GuestDoor::kVfioUser) {
    added = co_await add_vfio(drive, std::move(args));
  } else {
    added = co_await add_vhost(drive, std::move(args));
  }
  if (added && hooks_.door_changed) hooks_.door_changed(socket, true);
  co_return added;
}

task::Task<Attempt<void>> Doors::remove_guest(GuestDoor kind, ServedDrive& drive, GuestArgs args,
                                              Time until) {
  const std::string socket = args.socket;
  Attempt<void> removed;
  if (kind == GuestDoor::kVfioUser) {
    removed = co_await remove_vfio(std::move(args.socket), until);
  } else {
    removed = co_await remove_vhost(drive, std::move(args.socket), until);
  }
  if (removed && hooks_.door_changed) hooks_.door_changed(socket, false);
  co_return removed;
}

task::Task<void> Doors::expect_other_writers(const ServedDrive& drive) {
  if (is_at_nbd(drive)) {
    const Result<void> at_nbd = co_await nbd_.expect_other_writers(drive.name);
    CHECK(at_nbd.has_value(), "every drive is an export");
  }
  if (!drive.vhost || !drive.problem.empty()) co_return;
  const Result<void> at_vhost = co_await vhost_.expect_other_writers(drive.name);
  CHECK(at_vhost.has_value(), "a drive with a socket is served there");
}

task::Task<Attempt<void>> Doors::add_vfio(ServedDrive& drive, GuestArgs args) {
  const Attempt<env::Address> at = address_of(args.socket);
  if (!at) co_return std::unexpected(at.error());
  const VfioController controller{.socket = std::move(args.socket),
                                  .drives = {drive.name},
                                  .nqn = fmt::format("{}:{}", nqn(), drive.name),
                                  .pace = args.waiting};
  co_await expect_other_writers(drive);
  Attempt<void> done = co_await add_subsystem_of(controller);
  if (!done) co_return done;
  if (vfio_ == nullptr) vfio_ = std::make_unique<VfioDoor>(env_, nvme_.registry(), hooks_.log);
  done = co_await vfio_->open({controller});
  if (done) vfio_at_.push_back(controller);
  co_return done;
}

task::Task<Attempt<void>> Doors::add_vhost(ServedDrive& drive, GuestArgs args) {
  if (drive.vhost) {
    co_return refuse(
        fmt::format("{} is at {} already, and a drive has one vhost-user door: remove that first, "
                    "with 'cairn drive door remove {} --vhost-user {}'",
                    drive.name, in_quotes(drive.vhost->at.path), drive.name, drive.vhost->at.path));
  }
  Attempt<env::Address> at = address_of(args.socket);
  if (!at) co_return std::unexpected(at.error());
  co_await expect_other_writers(drive);
  const GuestSocket socket{.drive = drive.name, .at = std::move(*at), .waiting = args.waiting};
  const Attempt<void> served = co_await serve_vhost(drive, socket);
  if (served) drive.vhost = socket;
  co_return served;
}

task::Task<Attempt<void>> Doors::remove_vfio(std::string socket, Time until) {
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
  const bool is_used = nqn == this->nqn() ||
                       std::ranges::find(vfio_at_, nqn, &VfioController::nqn) != vfio_at_.end();
  if (is_used) co_return Attempt<void>();
  const Result<void> gone = co_await nvme_.registry().remove_subsystem(nqn);
  if (!gone) co_return refuse(gone.error().text());
  co_return Attempt<void>();
}

task::Task<Attempt<void>> Doors::remove_vhost(ServedDrive& drive, std::string socket, Time until) {
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
