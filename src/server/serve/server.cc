// SPDX-License-Identifier: Apache-2.0
#include "server/serve/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/words.h"
#include "nvme/controller/namespace_ids.h"
#include "server/common/advice.h"
#include "server/common/patience.h"
#include "server/common/reach.h"
#include "server/control/control_server.h"
#include "server/control/health_json.h"
#include "server/serve/control.h"
#include "task/sync.h"
#include "task/when_all.h"

namespace cairn::server {

namespace {

// Of each queue at most: what drivers of guests usually take.
constexpr uint16_t kGuestQueueEntries = 1024;

Problem cannot_export(const ServedDrive& drive, const Error& error) {
  return {fmt::format("drive {} cannot be served: {}", in_quotes(drive.name), error.text())};
}

// A drive as a namespace. Hosts know it by name, in whatever order they come; in each subsystem by
// ids of its own.
nvme::NamespaceOptions namespace_of(const ServedDrive& drive, const std::string& nqn,
                                    bool read_only) {
  const nvme::NamespaceIds ids = nvme::make_named_ids(nqn, drive.name);
  return {.source = drive.source.get(),
          .stack = drive.text,
          .nguid = ids.nguid,
          .uuid = ids.uuid,
          .read_only = read_only};
}

void add_namespace(BoxSubsystem& subsystem, const DriveServeOptions& options,
                   const ServedDrive& drive) {
  subsystem.namespaces.push_back(namespace_of(drive, subsystem.options.nqn, options.read_only));
}

// One subsystem with all drives, and one for each drive that has a controller of its own.
BoxOptions box_options(const DriveServeOptions& options, const std::vector<ServedDrive>& drives,
                       const std::vector<VfioController>& controllers) {
  BoxOptions box;
  box.listeners = options.nvme;
  // Those of guests have no list of hosts, and are nobody's over the network.
  for (BoxListener& listener : box.listeners) listener.subsystems = {options.nqn()};
  BoxSubsystem& all = box.subsystems.emplace_back(options.subsystem);
  if (!controllers.empty()) all.options.queue_entries_max = kGuestQueueEntries;
  for (const ServedDrive& drive : drives) add_namespace(all, options, drive);
  std::set<std::string_view> made = {options.nqn()};
  for (const VfioController& controller : controllers) {
    if (!made.insert(controller.nqn).second) continue;
    BoxSubsystem& own = box.subsystems.emplace_back();
    own.options.nqn = controller.nqn;
    own.options.queue_entries_max = kGuestQueueEntries;
    for (const ServedDrive& drive : drives) {
      if (controller.has(drive.name)) add_namespace(own, options, drive);
    }
  }
  box.drain_timeout = options.drain_timeout;
  return box;
}

std::vector<std::string> names_of(const std::vector<ServedDrive>& drives) {
  std::vector<std::string> names;
  names.reserve(drives.size());
  for (const ServedDrive& drive : drives) names.push_back(drive.name);
  return names;
}

door::nbd::NbdOptions nbd_options(const DriveServeOptions& options, door::nbd::ExportFinder& views,
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

door::vhost_user::VhostOptions vhost_options(const DriveServeOptions& options) {
  door::vhost_user::VhostOptions door;
  if (options.log) {
    door.log = [&options](std::string_view text) { options.log(config::LogLevel::kWarn, text); };
  }
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

Attempt<void> name_drives(std::vector<DriveArgs>& drives) {
  std::set<std::string> taken;
  for (size_t i = 0; i < drives.size(); ++i) {
    if (drives[i].name.empty()) drives[i].name = fmt::format("d{}", i);
    if (!taken.insert(drives[i].name).second) {
      return refuse(fmt::format("two drives are named {}: write another NAME=DRIVE",
                                in_quotes(drives[i].name)));
    }
  }
  return {};
}

DriveServer::DriveServer(env::Env& env, DriveServeOptions& options)
    : env_(env),
      options_(options),
      shared_(env),
      views_(env, drives_, options.read_only),
      strangers_(env, options.log),
      nbd_(env, nbd_options(options, views_, strangers_)),
      vhost_(env, vhost_options(options)),
      watch_(env, *this, [this](drive::Health health, std::string_view line) {
        if (options_.log) options_.log(level_of(health), line);
      }) {}

task::Task<Attempt<void>> DriveServer::open() {
  Attempt<void> done = co_await open_drives();
  if (done && (!options_.nvme.empty() || !options_.vfio.empty())) done = co_await open_nvme();
  if (done && !vfio_at_.empty()) done = co_await open_vfio();
  if (done) done = co_await open_nbd();
  if (done) done = co_await open_vhost();
  if (!done) co_return done;
  co_await watch_.look();
  watch_.start();
  if (has_failed()) reopening_.spawn(reopen_all());
  co_return done;
}

task::Task<Attempt<void>> DriveServer::open_nvme() {
  Attempt<std::vector<VfioController>> controllers =
      plan_controllers(options_.vfio, names_of(drives_), options_.nqn());
  if (!controllers) co_return std::unexpected(controllers.error());
  vfio_at_ = std::move(*controllers);
  Attempt<void> opened = co_await open_box();
  co_return opened;
}

task::Task<Attempt<void>> DriveServer::open_box() {
  box_ = std::make_unique<Box>(env_, box_options(options_, drives_, vfio_at_), BoxChanges{},
                               BoxHooks{.log = options_.log,
                                        .read_key = options_.read_key,
                                        .read_tls_key = options_.read_tls_key});
  const Attempt<void> opened = co_await box_->open();
  nvme_at_ = box_->listening();
  if (!opened) co_return opened;
  // Those that are not open yet come later; all others must be there.
  for (const Box::NotServed& each : box_->not_served()) {
    const bool is_pending = std::ranges::any_of(drives_, [&](const ServedDrive& drive) {
      return drive.source.get() == each.options.source && !drive.problem.empty();
    });
    if (!is_pending) co_return refuse(each.problem);
  }
  co_return opened;
}

task::Task<Attempt<void>> DriveServer::add_subsystem_of(const VfioController& controller) {
  nvme::Registry& registry = box_->registry();
  nvme::SubsystemOptions options;
  options.nqn = controller.nqn;
  options.queue_entries_max = kGuestQueueEntries;
  const Result<void> added = registry.add_subsystem(options);
  if (!added && added.error() == Errc::kExists) co_return Attempt<void>();
  if (!added) co_return refuse(added.error().text());
  for (const ServedDrive& drive : drives_) {
    if (!controller.has(drive.name)) continue;
    const Result<uint32_t> served = co_await registry.add_namespace(
        controller.nqn, namespace_of(drive, controller.nqn, options_.read_only));
    if (served) continue;
    const Result<void> undone = co_await registry.remove_subsystem(controller.nqn);
    (void)undone;
    co_return std::unexpected(cannot_export(drive, served.error()));
  }
  co_return Attempt<void>();
}

task::Task<Attempt<void>> DriveServer::open_vfio() {
  vfio_ = std::make_unique<VfioDoor>(env_, box_->registry(), options_.log);
  Attempt<void> opened = co_await vfio_->open(vfio_at_);
  co_return opened;
}

task::Task<Attempt<void>> DriveServer::open_nbd() {
  for (const env::Address& at : options_.nbd) {
    Result<env::Address> local = fail(Errc::kClosed, "not tried");
    Patience patience(env_);
    for (bool again = true; again;) {
      local = nbd_.listen(at);
      again = co_await patience.after(local);
    }
    if (!local) co_return std::unexpected(cannot_listen(at, local.error()));
    nbd_at_.push_back(std::move(*local));
  }
  co_return Attempt<void>();
}

// A single source is served on one core after the other, a stack on its own.
task::Task<Attempt<void>> DriveServer::open_vhost() {
  for (const ServedDrive& drive : drives_) {
    if (!drive.vhost || !drive.problem.empty()) continue;
    const Attempt<void> served = co_await serve_vhost(drive, *drive.vhost);
    if (!served) co_return served;
  }
  co_return Attempt<void>();
}

task::Task<Attempt<void>> DriveServer::serve_vhost(const ServedDrive& drive, GuestSocket socket) {
  const CoreId core =
      drive.stack != nullptr ? drive.home : CoreId(vhost_sources_++ % env_.core_count());
  const bool has_others = !options_.nvme.empty() || !options_.nbd.empty() || !vfio_at_.empty();
  Result<void> served = fail(Errc::kClosed, "not tried");
  Patience patience(env_);
  for (bool again = true; again;) {
    served = co_await vhost_.serve({.drive = {.name = drive.name,
                                              .description = drive.text,
                                              .read_only = options_.read_only,
                                              .has_other_writers = has_others,
                                              .source = drive.source.get()},
                                    .at = socket.at,
                                    .core = core,
                                    .waiting = socket.waiting});
    again = co_await patience.after(served);
  }
  if (!served) co_return std::unexpected(cannot_listen(socket.at, served.error()));
  co_return Attempt<void>();
}

task::Task<void> DriveServer::close_vhost() {
  co_await vhost_.drain(env_.now() + options_.drain_timeout);
  co_await vhost_.close();
}

task::Task<void> DriveServer::close_nbd() {
  co_await nbd_.drain(env_.now() + options_.drain_timeout);
  co_await nbd_.close();
}

// Controllers of virtual machines go before the registry they are attached to.
task::Task<void> DriveServer::close_nvme() {
  if (vfio_ != nullptr) co_await vfio_->close(env_.now() + options_.drain_timeout);
  co_await box_->close();
}

task::Task<void> DriveServer::close() {
  closing_.request();
  co_await reopening_.close();
  co_await watch_.close();
  std::vector<task::Task<void>> doors;
  doors.push_back(close_nbd());
  if (box_ != nullptr) doors.push_back(close_nvme());
  doors.push_back(close_vhost());
  co_await task::when_all(std::move(doors));
  for (ServedDrive& drive : drives_) co_await drive.source->close(env_);
  drives_.clear();
}

Attempt<ServedDrive*> DriveServer::find(std::string_view name) {
  std::vector<std::string> names;
  for (ServedDrive& drive : drives_) {
    if (drive.name == name || (name.empty() && drives_.size() == 1)) return &drive;
    names.push_back(drive.name);
  }
  if (name.empty()) {
    return refuse(
        fmt::format("{} drives are served here: name one of {}", drives_.size(), first_few(names)));
  }
  return refuse(fmt::format("no drive {} is served here{} (there are {})", in_quotes(name),
                            did_you_mean(name, names), first_few(names)));
}

namespace {

// The control socket's path; empty when there is to be none.
task::Task<Attempt<std::string>> listen_for_control(env::Env& env, ControlServer& control,
                                                    const DriveServeOptions& options) {
  if (!options.control_path) co_return std::string();
  Attempt<std::string> path = options.control_path();
  if (!path) co_return path;
  const Attempt<void> listening = co_await listen_at(env, control, *path);
  if (!listening) co_return std::unexpected(listening.error());
  co_return path;
}

}  // namespace

task::Task<Attempt<void>> serve_drives(env::Env& env, DriveServeOptions& options) {
  DriveServer server(env, options);
  ControlServer control(
      env, [&server](ControlRequest request) { return execute(server, std::move(request)); });
  Attempt<void> outcome = co_await server.open();
  if (outcome) {
    const Attempt<std::string> path = co_await listen_for_control(env, control, options);
    if (path) {
      if (options.ready) options.ready(server, *path);
      task::Event never;
      const Result<void> stopped = co_await never.wait(env.stop_token());
      (void)stopped;
    } else {
      outcome = std::unexpected(path.error());
    }
  }
  co_await control.close();
  co_await server.close();
  co_return outcome;
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
