// SPDX-License-Identifier: Apache-2.0
#include "server/serve/vfio_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/words.h"
#include "door/vfio_user/controller.h"
#include "door/vfio_user/limits.h"
#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "server/serve/guest_socket.h"

namespace cairn::server {

namespace {

// The name of a controller's socket in a folder, where SPDK's driver looks for it.
constexpr std::string_view kSocketInFolder = "cntrl";

}  // namespace

Attempt<VfioArgs> parse_vfio_args(std::string_view text) {
  Attempt<GuestArgs> args = parse_guest_args(text);
  if (!args) return std::unexpected(args.error());
  std::error_code ignored;
  const std::filesystem::path path(args->socket);
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  return VfioArgs{.drive = std::move(args->drive),
                  .socket = is_folder ? (path / kSocketInFolder).string() : args->socket,
                  .pace = args->waiting};
}

Attempt<std::vector<VfioController>> plan_controllers(const std::vector<VfioArgs>& doors,
                                                      const std::vector<std::string>& drives,
                                                      const std::string& nqn) {
  std::vector<VfioController> controllers;
  std::set<std::string> sockets;
  const auto add = [&](VfioController controller) -> Attempt<void> {
    if (!sockets.insert(controller.socket).second) {
      return refuse(fmt::format("two vfio-user controllers are at {}: give each its own socket",
                                controller.socket));
    }
    controllers.push_back(std::move(controller));
    return {};
  };
  for (const VfioArgs& door : doors) {
    if (!door.drive.empty() && std::ranges::find(drives, door.drive) == drives.end()) {
      return refuse(fmt::format("no drive {} is served{} (there are {})", in_quotes(door.drive),
                                did_you_mean(door.drive, drives), first_few(drives)));
    }
    const size_t percent = door.socket.find('%');
    const bool is_for_each = percent != door.socket.npos;
    if (!is_for_each && door.drive.empty()) {
      const Attempt<void> added =
          add({.socket = door.socket, .drives = drives, .nqn = nqn, .pace = door.pace});
      if (!added) return std::unexpected(added.error());
      continue;
    }
    for (const std::string& drive : drives) {
      if (!door.drive.empty() && door.drive != drive) continue;
      std::string socket = door.socket;
      if (is_for_each) socket.replace(percent, 1, drive);
      const Attempt<void> added = add({.socket = std::move(socket),
                                       .drives = {drive},
                                       .nqn = fmt::format("{}:{}", nqn, drive),
                                       .pace = door.pace});
      if (!added) return std::unexpected(added.error());
    }
  }
  return controllers;
}

VfioDoor::VfioDoor(env::Env& env, nvme::Registry& registry,
                   std::function<void(config::LogLevel, std::string_view)> log)
    : env_(env),
      registry_(registry),
      server_(env, {.log = [log = std::move(log)](std::string_view text) {
                if (log) log(config::LogLevel::kWarn, text);
              }}) {}

task::Task<Attempt<void>> VfioDoor::open(const std::vector<VfioController>& controllers) {
  for (const VfioController& controller : controllers) {
    const env::Address at{.family = env::Address::Family::kLocal, .path = controller.socket};
    const auto make = [this, nqn = controller.nqn](door::vfio_user::DeviceParts parts) {
      return door::vfio_user::PciController::make(std::move(parts),
                                                  {.registry = registry_,
                                                   .control = env_.core(),
                                                   .nqn = nqn,
                                                   .vectors = door::vfio_user::kVectors,
                                                   .on_leave = {}});
    };
    Result<void> added = fail(Errc::kClosed, "not tried");
    HolderRetry retry(env_);
    for (bool again = true; again;) {
      added = server_.add(controller.socket, at, make, controller.pace);
      again = co_await retry.after(added);
    }
    if (!added) co_return std::unexpected(cannot_listen(at, added.error()));
  }
  co_return Attempt<void>();
}

task::Task<void> VfioDoor::close(Time until) {
  co_await server_.drain(until);
  co_await server_.close();
}

}  // namespace cairn::server
