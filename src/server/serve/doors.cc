// SPDX-License-Identifier: Apache-2.0
#include "server/serve/doors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error_text.h"
#include "base/words.h"
#include "nvme/controller/namespace_ids.h"
#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "server/common/reach.h"
#include "task/when_all.h"

namespace cairn::server {

namespace {

// Of each queue at most: what drivers of guests usually take.
constexpr uint16_t kGuestQueueEntries = 1024;

// A drive in the subsystem of a controller of its own. Guests know it by name.
nvme::NamespaceOptions namespace_of(const ServedDrive& drive, const std::string& nqn) {
  const nvme::NamespaceIds ids = nvme::make_named_ids(nqn, drive.name);
  return {.source = drive.source.get(),
          .stack = drive.text,
          .nguid = ids.nguid,
          .uuid = ids.uuid,
          .read_only = drive.space.read_only};
}

door::nbd::NbdOptions nbd_options(const DoorOptions& options, door::nbd::ExportFinder& views,
                                  StrangerLog& strangers) {
  door::nbd::NbdOptions door;
  door.finder = &views;
  door.keys = options.keys;
  door.certificate = options.certificate;
  door.connections.connections_max = static_cast<uint32_t>(options.nbd_connections_max);
  door.idle_timeout = options.nbd_idle_timeout;
  door.on_refused = [&strangers](const stream::RefusedConnection& connection) {
    strangers.note(connection, "NBD client");
  };
  return door;
}

door::vhost_user::VhostOptions vhost_options(const ServerHooks& hooks) {
  door::vhost_user::VhostOptions door;
  door.log = [&hooks](std::string_view text) { hooks.say(config::LogLevel::kWarn, text); };
  return door;
}

// As a part of a URI: what has a meaning there is written as %NN.
std::string in_uri(std::string_view text) {
  constexpr std::string_view kPlain = "-._~/";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.find(c) != kPlain.npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

Doors::Doors(env::Env& env, const DoorOptions& options, const ServerOptions& server,
             const ServerHooks& hooks, Drives& drives, NvmeDoor& nvme, StrangerLog& strangers)
    : env_(env),
      options_(options),
      server_(server),
      hooks_(hooks),
      drives_(drives),
      nvme_(nvme),
      views_(env, drives.all()),
      nbd_(env, nbd_options(options, views_, strangers)),
      vhost_(env, vhost_options(hooks)) {}

task::Task<Attempt<void>> Doors::open() {
  std::vector<std::string> names;
  for (const auto& drive : drives_.all()) {
    if (drive->space.owner.empty()) names.push_back(drive->name);
  }
  std::vector<GuestSocket> sockets = options_.vhost;
  Attempt<void> done = assign_sockets(sockets, names);
  for (const auto& drive : drives_.all()) {
    for (const GuestSocket& socket : sockets) {
      if (socket.drive == drive->name) drive->vhost = socket;
    }
    if (done) done = co_await add(*drive);
  }
  if (done && !options_.vfio.empty()) done = co_await open_vfio(std::move(names));
  if (done) done = co_await open_nbd();
  for (const auto& drive : drives_.all()) {
    if (!done || !drive->vhost || !drive->problem.empty()) continue;
    done = co_await serve_vhost(*drive, *drive->vhost);
  }
  co_return done;
}

task::Task<Attempt<void>> Doors::add(ServedDrive& drive) {
  if (!is_at_nbd(drive)) co_return Attempt<void>();
  const bool has_others = !server_.listeners.empty() || !options_.vfio.empty() || drive.vhost;
  const Result<void> added = co_await nbd_.add({.name = drive.name,
                                                .description = drive.text,
                                                .read_only = drive.space.read_only,
                                                .has_other_writers = has_others,
                                                .source = drive.source.get()});
  if (added) co_return Attempt<void>();
  co_return refuse(
      fmt::format("drive {} cannot be served: {}", in_quotes(drive.name), added.error().text()));
}

task::Task<Attempt<void>> Doors::opened(ServedDrive& drive) {
  for (const VfioController& controller : vfio_at_) {
    if (controller.nqn == nqn() || !controller.has(drive.name)) continue;
    const Result<uint32_t> served = co_await nvme_.registry().add_namespace(
        controller.nqn, namespace_of(drive, controller.nqn));
    if (!served && served.error() != Errc::kExists) co_return refuse(served.error().text());
  }
  if (!drive.vhost) co_return Attempt<void>();
  Attempt<void> served = co_await serve_vhost(drive, *drive.vhost);
  co_return served;
}

Attempt<void> Doors::check_removable(const ServedDrive& drive) const {
  std::string socket;
  std::string kind = "vhost-user";
  if (drive.vhost) socket = drive.vhost->at.path;
  for (const VfioController& controller : vfio_at_) {
    if (controller.nqn == nqn() || !controller.has(drive.name)) continue;
    socket = controller.socket;
    kind = "vfio-user";
  }
  if (!socket.empty()) {
    return refuse(
        fmt::format("{} has a door for a virtual machine at {}: remove that first, with 'cairn "
                    "drive door remove {} --{} {}'",
                    drive.name, in_quotes(socket), drive.name, kind, socket));
  }
  if (!views_.are_open(drive.name)) return {};
  return refuse(
      fmt::format("NBD clients use versions or clones of {}: end them first", drive.name));
}

task::Task<void> Doors::remove(const ServedDrive& drive) {
  for (VfioController& controller : vfio_at_) std::erase(controller.drives, drive.name);
  if (!is_at_nbd(drive)) co_return;
  const Result<void> removed = co_await nbd_.remove(drive.name, env_.now() + server_.drain_timeout);
  (void)removed;  // it is gone, whether it was there or not
}

task::Task<Attempt<void>> Doors::add_subsystem_of(const VfioController& controller) {
  nvme::Registry& registry = nvme_.registry();
  nvme::SubsystemOptions options;
  options.nqn = controller.nqn;
  options.queue_entries_max = kGuestQueueEntries;
  const Result<void> added = registry.add_subsystem(options);
  if (!added && added.error() == Errc::kExists) co_return Attempt<void>();
  if (!added) co_return refuse(added.error().text());
  for (const auto& drive : drives_.all()) {
    if (!controller.has(drive->name) || !drive->problem.empty()) continue;
    const Result<uint32_t> served =
        co_await registry.add_namespace(controller.nqn, namespace_of(*drive, controller.nqn));
    if (served) continue;
    const Result<void> undone = co_await registry.remove_subsystem(controller.nqn);
    (void)undone;
    co_return refuse(fmt::format("drive {} cannot be served: {}", in_quotes(drive->name),
                                 served.error().text()));
  }
  co_return Attempt<void>();
}

task::Task<Attempt<void>> Doors::open_vfio(std::vector<std::string> names) {
  Attempt<std::vector<VfioController>> controllers = plan_controllers(options_.vfio, names, nqn());
  if (!controllers) co_return std::unexpected(controllers.error());
  vfio_at_ = std::move(*controllers);
  for (VfioController& controller : vfio_at_) {
    if (controller.nqn == nqn()) {
      // It has the namespaces of the first subsystem.
      std::erase_if(controller.drives, [this](const std::string& name) {
        const Attempt<ServedDrive*> drive = drives_.find(name);
        return drive && (*drive)->nqn != nqn();
      });
      continue;
    }
    const Attempt<void> added = co_await add_subsystem_of(controller);
    if (!added) co_return added;
  }
  vfio_ = std::make_unique<VfioDoor>(env_, nvme_.registry(), hooks_.log);
  Attempt<void> opened = co_await vfio_->open(vfio_at_);
  co_return opened;
}

task::Task<Attempt<void>> Doors::open_nbd() {
  for (const env::Address& at : options_.nbd) {
    Result<env::Address> local = fail(Errc::kClosed, "not tried");
    HolderRetry retry(env_);
    for (bool again = true; again;) {
      local = nbd_.listen(at);
      again = co_await retry.after(local);
    }
    if (!local) co_return std::unexpected(cannot_listen(at, local.error()));
    nbd_at_.push_back(std::move(*local));
  }
  co_return Attempt<void>();
}

// A single source is served on one core after the other, a stack on its own.
task::Task<Attempt<void>> Doors::serve_vhost(const ServedDrive& drive, GuestSocket socket) {
  const CoreId core =
      drive.stack() != nullptr ? drive.home : CoreId(vhost_sources_++ % env_.core_count());
  const bool has_others = !server_.listeners.empty() || !options_.nbd.empty() || !vfio_at_.empty();
  Result<void> served = fail(Errc::kClosed, "not tried");
  HolderRetry retry(env_);
  for (bool again = true; again;) {
    served = co_await vhost_.serve({.drive = {.name = drive.name,
                                              .description = drive.text,
                                              .read_only = drive.space.read_only,
                                              .has_other_writers = has_others,
                                              .source = drive.source.get()},
                                    .at = socket.at,
                                    .core = core,
                                    .waiting = socket.waiting});
    again = co_await retry.after(served);
  }
  if (!served) co_return std::unexpected(cannot_listen(socket.at, served.error()));
  co_return Attempt<void>();
}

task::Task<void> Doors::close_vhost() {
  co_await vhost_.drain(env_.now() + server_.drain_timeout);
  co_await vhost_.close();
}

task::Task<void> Doors::close_nbd() {
  co_await nbd_.drain(env_.now() + server_.drain_timeout);
  co_await nbd_.close();
}

task::Task<void> Doors::close() {
  std::vector<task::Task<void>> doors;
  doors.push_back(close_nbd());
  if (vfio_ != nullptr) doors.push_back(vfio_->close(env_.now() + server_.drain_timeout));
  doors.push_back(close_vhost());
  co_await task::when_all(std::move(doors));
}

task::Task<Attempt<void>> Doors::resize_at_nbd(std::string name, uint64_t bytes) {
  const Result<void> resized = co_await nbd_.resize(name, bytes);
  if (!resized) co_return refuse(error_text(resized.error()));
  co_return Attempt<void>();
}

task::Task<Attempt<void>> Doors::resize_at_vhost(std::string name, uint64_t bytes) {
  const Result<void> resized = co_await vhost_.resize(name, bytes);
  if (!resized) co_return refuse(error_text(resized.error()));
  co_return Attempt<void>();
}

// A subsystem that has one drive.
task::Task<Attempt<void>> Doors::resize_at(std::string nqn, uint64_t bytes) {
  const Result<void> resized = co_await nvme_.registry().resize_namespace(nqn, 1, bytes);
  if (!resized) co_return refuse(error_text(resized.error()));
  co_return Attempt<void>();
}

std::vector<Doors::Resizing> Doors::resizings_of(const ServedDrive& drive) {
  std::vector<Resizing> all;
  if (is_at_nbd(drive)) {
    all.emplace_back(
        [this, name = drive.name](uint64_t bytes) { return resize_at_nbd(name, bytes); });
  }
  if (drive.vhost) {
    all.emplace_back(
        [this, name = drive.name](uint64_t bytes) { return resize_at_vhost(name, bytes); });
  }
  std::set<std::string_view> added = {nqn()};
  for (const VfioController& controller : vfio_at_) {
    if (!controller.has(drive.name) || !added.insert(controller.nqn).second) continue;
    all.emplace_back(
        [this, own = controller.nqn](uint64_t bytes) { return resize_at(own, bytes); });
  }
  return all;
}

std::string nbd_uri(const env::Address& at, const std::string& name, const NbdWay& way) {
  const std::string scheme = way.is_secure ? "nbds" : "nbd";
  const std::string who = way.user.empty() ? "" : in_uri(way.user) + "@";
  if (at.family == env::Address::Family::kLocal) {
    return fmt::format("{}+unix://{}/{}?socket={}", scheme, who, in_uri(name), in_uri(at.path));
  }
  const Reach near = reach(at);
  const bool is_ip6 = near.host.find(':') != std::string::npos;
  const std::string host = is_ip6 ? fmt::format("[{}]", near.host) : near.host;
  return fmt::format("{}://{}{}:{}/{}", scheme, who, host, near.port, in_uri(name));
}

}  // namespace cairn::server
