// SPDX-License-Identifier: Apache-2.0
// `cairn serve`: drives and stacks of services at every door.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/serve/access_args.h"
#include "apps/serve/run.h"
#include "base/duration.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "nvme/controller/namespace_ids.h"
#include "server/common/access_keys.h"
#include "server/common/default_nqn.h"
#include "server/common/reach.h"
#include "server/control/control_path.h"
#include "server/open/open.h"
#include "server/open/take_drive.h"

namespace cairn::apps {

namespace {

// The path as it is from any folder.
std::string whole(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::absolute(path, error).lexically_normal();
  return error ? path : found.string();
}

Attempt<void> add_nvme_address(const std::string& text, std::vector<env::Address>& to) {
  Result<env::Address> address = env::Address::parse(text);
  const bool is_local = address && address->family == env::Address::Family::kLocal;
  if (!address || is_local) {
    return refuse(fmt::format("{} is no address: {}; write 127.0.0.1:4420 or [::]:4420",
                              in_quotes(text),
                              is_local ? "a port is needed" : address.error().what()));
  }
  to.push_back(std::move(*address));
  return {};
}

Attempt<void> add_nbd_address(const std::string& text, std::vector<env::Address>& to) {
  Result<env::Address> address = env::Address::parse(text);
  if (!address) {
    return refuse(fmt::format("{} is no address: {}; write unix:/run/cairn.sock or 127.0.0.1:10809",
                              in_quotes(text), address.error().what()));
  }
  if (address->family == env::Address::Family::kLocal) address->path = whole(address->path);
  to.push_back(std::move(*address));
  return {};
}

// What was said on the command line; it wins over the file.
struct ServeArgs {
  std::vector<nvme::NamespaceOptions> drives;
  std::map<std::string, std::string> typed;
  std::vector<env::Address> nvme;
  std::vector<env::Address> advertise;
  std::string nqn;
  AccessArgs access;
  server::NbdConfig nbd;
  std::vector<std::string> vfio;
  std::vector<std::string> vhost;
  std::string state;
  std::string control;
  std::optional<Duration> nbd_idle_timeout;
  std::optional<Duration> drain_timeout;
  int nbd_connections_max = 0;  // 0: not said
  bool format = false;
  bool read_only = false;
  std::optional<server::StoreUri> rack;
  std::string rack_name;
  std::vector<server::RackShelf> shelves;
};

// Hosts know a drive that has a name by that, in whatever order drives come.
void add_drives(const ServeArgs& args, server::SubsystemConfig& subsystem) {
  for (nvme::NamespaceOptions drive : args.drives) {
    if (!drive.name.empty()) {
      const nvme::NamespaceIds ids = nvme::make_named_ids(subsystem.options.nqn, drive.name);
      drive.nguid = ids.nguid;
      drive.uuid = ids.uuid;
    }
    subsystem.namespaces.push_back(std::move(drive));
  }
}

// The subsystem that drives and --host are about: the one named, or the only one; made if the file
// has none.
Attempt<server::SubsystemConfig*> subsystem_for(const ServeArgs& args, const std::string& state,
                                                server::ServerOptions& server) {
  for (server::SubsystemConfig& each : server.subsystems) {
    if (each.options.nqn == args.nqn) return &each;
  }
  if (args.nqn.empty() && server.subsystems.size() == 1) return &server.subsystems.front();
  if (args.nqn.empty() && server.subsystems.size() > 1) {
    return refuse(
        fmt::format("the file has several subsystems: say with --nqn which one drives "
                    "and --host are for ({})",
                    comma_list(nqns_of(server))));
  }
  Attempt<std::string> nqn = args.nqn;
  if (args.nqn.empty()) nqn = server::make_default_nqn("drives", state, args.drives);
  if (!nqn) return std::unexpected(nqn.error());
  server::SubsystemConfig& made = server.subsystems.emplace_back();
  made.options.nqn = std::move(*nqn);
  return &made;
}

Attempt<void> merge_listeners(const ServeArgs& args, server::ServerConfig& config) {
  server::ServerOptions& server = config.server;
  if (args.advertise.size() > args.nvme.size()) {
    return refuse(
        "--advertise goes with a --nvme-tcp each: give as many of both, in the same order");
  }
  if (!args.nvme.empty()) server.listeners.clear();
  for (size_t i = 0; i < args.nvme.size(); ++i) {
    server::ListenerOptions& listener =
        server.listeners.emplace_back(server::ListenerOptions{.address = args.nvme[i]});
    if (i < args.advertise.size()) listener.advertise = args.advertise[i];
  }
  const bool has_door = !server.listeners.empty() || !config.nbd.addresses.empty() ||
                        !config.vfio_user.empty() || !config.vhost_user.empty();
  if (!has_door) server.listeners.push_back({.address = env::Address::loopback(4420)});
  if ((args.access.has_hosts() || !args.access.tls.empty()) && server.listeners.empty()) {
    return refuse(
        "--host, --tls and keys of hosts are about NVMe hosts, and there is no place where they "
        "connect: add --nvme-tcp ADDR:PORT");
  }
  return take_tls_args(args.access, "--nvme-tcp", server.listeners);
}

void merge_doors(const ServeArgs& args, server::ServerConfig& config) {
  server::NbdConfig& nbd = config.nbd;
  if (!args.nbd.addresses.empty()) nbd.addresses = args.nbd.addresses;
  if (!args.nbd.tls_psk.empty()) nbd.tls_psk = args.nbd.tls_psk;
  if (!args.nbd.tls_cert.empty()) nbd.tls_cert = args.nbd.tls_cert;
  if (!args.nbd.tls_key.empty()) nbd.tls_key = args.nbd.tls_key;
  if (!args.nbd.tls_ca.empty()) nbd.tls_ca = args.nbd.tls_ca;
  if (args.nbd_connections_max != 0) nbd.connections_max = args.nbd_connections_max;
  if (args.nbd_idle_timeout) nbd.idle_timeout = *args.nbd_idle_timeout;
  if (!args.vfio.empty()) config.vfio_user = args.vfio;
  if (!args.vhost.empty()) config.vhost_user = args.vhost;
}

// Space is only given away where what was promised is kept.
Attempt<void> merge_rack(const ServeArgs& args, server::ServerConfig& config) {
  server::RackOptions& rack = config.rack;
  if (args.rack) rack.store = *args.rack;
  if (!args.rack_name.empty()) rack.name = args.rack_name;
  if (!args.shelves.empty()) rack.shelves = args.shelves;
  for (server::RackShelf& shelf : rack.shelves) {
    if (shelf.subsystem.empty()) shelf.subsystem = args.nqn;
  }
  const bool has_store = !rack.store.servers.empty() || !rack.store.folder.empty();
  if (rack.shelves.empty() && has_store) {
    return refuse("a server in a rack needs a shelf to offer: --shelf d0=file:FOLDER,size=100G");
  }
  if (!rack.shelves.empty() && !has_store) {
    return refuse(
        fmt::format("a shelf is offered in a rack: say where its metadata is with --rack "
                    "{}, or with store in [rack]",
                    server::kDefaultStore));
  }
  if (!rack.shelves.empty() && config.state.empty()) {
    return refuse(
        "a server that gives space away must remember to whom: name a folder with --state DIR");
  }
  return {};
}

Attempt<void> merge(const ServeArgs& args, server::ServerConfig& config) {
  merge_doors(args, config);
  if (Attempt<void> merged = merge_listeners(args, config); !merged) return merged;
  if (!args.state.empty()) config.state = args.state;
  server::ServerOptions& server = config.server;
  const bool has_args = !args.drives.empty() || !args.nqn.empty() || args.access.has_hosts();
  if (has_args || server.subsystems.empty()) {
    const Attempt<server::SubsystemConfig*> subsystem = subsystem_for(args, config.state, server);
    if (!subsystem) return std::unexpected(subsystem.error());
    add_drives(args, **subsystem);
    take_host_args(args.access, **subsystem);
  }
  if (!args.control.empty()) config.control = args.control;
  server.typed = args.typed;
  server.format = args.format;
  if (args.drain_timeout) server.drain_timeout = *args.drain_timeout;
  bool has_drives = false;
  for (server::SubsystemConfig& each : server.subsystems) {
    has_drives = has_drives || !each.namespaces.empty();
    for (nvme::NamespaceOptions& drive : each.namespaces) drive.read_only |= args.read_only;
  }
  if (Attempt<void> merged = merge_rack(args, config); !merged) return merged;
  if (!has_drives && config.state.empty()) {
    return refuse("there is nothing to serve: name a drive such as mem:size=1G, or a stack");
  }
  return {};
}

class ServeCommand final : public Command {
 public:
  explicit ServeCommand(CLI::App& app) {
    add_drive_options(app);
    add_nvme_options(app);
    add_nbd_options(app);
    add_guest_options(app);
    add_rack_options(app);
    add_text(app, "--state DIR", args_.state, "keep live changes and reservations here");
    add_value(app, "--control PATH", "the control socket, or off (one per process)",
              [this](const std::string& text) -> Attempt<void> {
                if (text == "off") {
                  args_.control = text;
                  return {};
                }
                Attempt<std::string> path = server::check_control_path(whole(text));
                if (!path) return std::unexpected(path.error());
                args_.control = std::move(*path);
                return {};
              });
    add_time(app, "--drain-timeout TIME", args_.drain_timeout,
             "at the end, for requests in flight (10s)");
    add_settings(app, settings_);
    set_examples(
        app,
        {"cairn serve mem:size=1G",
         "cairn serve 'safe=mirror(file:/a,size=8G, file:/b,size=8G)' --nbd unix:/tmp/s",
         ("cairn serve file:/srv/d0 --nvme-tcp 0.0.0.0:4420 --tls required "
          "--tls-key HOSTNQN=host.key"),
         "cairn serve file:/srv/d0 --nbd 0.0.0.0:10809 --tls-psk keys.psk",
         "cairn serve 'vm=mirror(file:/a, file:/b)' --vhost-user /run/vm.sock",
         "cairn serve mem:size=1G --vfio-user /run/vm.sock", "cairn serve --config server.toml"});
  }

  Attempt<int> run() override {
    server::ServerConfig config;
    const Attempt<config::Settings> settings = config::resolve(
        settings_, [&config](config::Section& root) { server::add_server_keys(root, config); });
    if (!settings) return std::unexpected(settings.error());
    if (const Attempt<void> merged = merge(args_, config); !merged) {
      return std::unexpected(merged.error());
    }
    return run_server(*settings, config,
                      [&config](const server::Server& server) { greet(server, config); });
  }

 private:
  void add_drive_options(CLI::App& app) {
    add_values(app, "STACK",
               "[NAME=] and mem:size=1G, file:PATH,size=8G, flash:profile=NAME,size=4G, "
               "nvme-tcp://HOST/NQN, or services over such; several allowed",
               [this](const std::string& text) {
                 return take(server::parse_drive_args(text, server::LookUp::kWhenOpened), text);
               })
        ->expected(-1);
    add_values(app, "--file [NAME=]FILE", "a stack that the file holds as TOML; several allowed",
               [this](const std::string& text) {
                 return take(server::read_stack_file(text, server::LookUp::kWhenOpened), "");
               });
    add_switch(app, "--read-only", args_.read_only, "clients may not write");
    add_switch(app, "--format", args_.format,
               "layers may take drives that are not blank: what those hold is lost");
  }
  void add_nvme_options(CLI::App& app) {
    add_values(app, "--nvme-tcp ADDRESS",
               "ADDR:PORT for NVMe hosts, several allowed (127.0.0.1:4420 when there is no door)",
               [this](const std::string& text) { return add_nvme_address(text, args_.nvme); });
    add_values(app, "--advertise ADDRESS", "what discovery tells hosts instead, one per --nvme-tcp",
               [this](const std::string& text) { return add_nvme_address(text, args_.advertise); });
    add_value(app, "--nqn NQN", "the subsystem of NVMe hosts (drives-NUMBER, made from the drives)",
              [this](const std::string& text) -> Attempt<void> {
                Attempt<void> named = server::check_subsystem_nqn(text);
                if (named) args_.nqn = text;
                return named;
              });
    add_host_option(app, args_.access);
    add_tls_option(app, "--nvme-tcp", args_.access);
    add_values(app, "--tls-key FILE|HOSTNQN=FILE",
               "the key of --tls-cert; or that of an NVMe host, which may connect then",
               [this](const std::string& text) { return take_tls_key(text); });
  }
  void add_nbd_options(CLI::App& app) {
    add_values(
        app, "--nbd ADDRESS", "unix:SOCKET or ADDR:PORT for NBD clients, several allowed",
        [this](const std::string& text) { return add_nbd_address(text, args_.nbd.addresses); });
    add_file(app, "--tls-psk FILE", args_.nbd.tls_psk,
             "NBD clients must come through TLS with a key of this file");
    add_file(app, "--tls-cert FILE", args_.nbd.tls_cert,
             "NBD clients must come through TLS; what is shown to them");
    add_file(app, "--tls-ca FILE", args_.nbd.tls_ca,
             "NBD clients must show a certificate that one of these has signed");
    add_integer(app, "--nbd-connections-max N", args_.nbd_connections_max,
                {.min = 1, .max = 1 << 20}, "NBD clients at a time (1024)");
    add_time(app, "--nbd-idle-timeout TIME", args_.nbd_idle_timeout,
             "idle for so long, an NBD client makes room when there is none (10m)");
  }
  void add_guest_options(CLI::App& app) {
    add_values(app, "--vfio-user [NAME=]SOCKET",
               "an NVMe controller for a virtual machine, several allowed; ,mode=polling or "
               "interrupt (adaptive)",
               [this](const std::string& text) -> Attempt<void> {
                 const Attempt<server::VfioArgs> args = server::parse_vfio_args(text);
                 if (!args) return std::unexpected(args.error());
                 args_.vfio.push_back(text);
                 return {};
               });
    add_values(app, "--vhost-user [NAME=]SOCK[,mode=MODE]",
               "where a virtual machine finds the drive; MODE is interrupt, adaptive or polling "
               "(adaptive)",
               [this](const std::string& text) -> Attempt<void> {
                 const Attempt<server::GuestSocket> socket = server::parse_guest_socket(text);
                 if (!socket) return std::unexpected(socket.error());
                 args_.vhost.push_back(text);
                 return {};
               })
        ->allow_extra_args(false);
  }
  void add_rack_options(CLI::App& app) {
    add_value(app, "--rack META",
              "offer shelves in the rack whose metadata is at meta://ADDR:PORT, etcd://ADDR:PORT "
              "or rocks:FOLDER",
              [this](const std::string& text) -> Attempt<void> {
                Attempt<server::StoreUri> uri = server::StoreUri::parse(text);
                if (!uri) return std::unexpected(uri.error());
                args_.rack = std::move(*uri);
                return {};
              });
    add_value(app, "--rack-name NAME", "what the rack calls this server (where it is reached)",
              [this](const std::string& text) -> Attempt<void> {
                if (const Result<void> named = rack::check_box_name(text); !named) {
                  return refuse(named.error().what());
                }
                args_.rack_name = text;
                return {};
              });
    add_values(app, "--shelf NAME=SPACE",
               "space to give away: mem:size=8G or file:FOLDER,size=100G; iops=N and "
               "bandwidth=SIZE may follow; several allowed",
               [this](const std::string& text) -> Attempt<void> {
                 Attempt<server::RackShelf> shelf = server::parse_shelf(text);
                 if (!shelf) return std::unexpected(shelf.error());
                 const auto same = [&shelf](const server::RackShelf& each) {
                   return each.name == shelf->name;
                 };
                 if (std::ranges::any_of(args_.shelves, same)) {
                   return refuse(fmt::format("shelf {} is there twice", shelf->name));
                 }
                 args_.shelves.push_back(std::move(*shelf));
                 return {};
               });
  }

  static void add_text(CLI::App& app, std::string_view spec, std::string& into, std::string help) {
    add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
      into = text;
      return {};
    });
  }
  static void add_file(CLI::App& app, std::string_view spec, std::string& into, std::string help) {
    add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
      into = whole(text);
      return {};
    });
  }
  static void add_time(CLI::App& app, std::string_view spec, std::optional<Duration>& into,
                       std::string help) {
    add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
      const Attempt<Duration> time = parse_duration(text);
      if (!time) return std::unexpected(time.error());
      into = *time;
      return {};
    });
  }

  // Mistakes are shown in what was typed.
  Attempt<void> take(Attempt<server::DriveArgs> args, const std::string& text) {
    if (!args) return std::unexpected(args.error());
    nvme::NamespaceOptions& drive = args_.drives.emplace_back();
    drive.name = std::move(args->name);
    if (args->stack == nullptr) {
      drive.drive = std::move(args->spec);
    } else {
      drive.stack = std::move(args->text);
      if (!text.empty()) args_.typed[drive.stack] = server::without_name(text);
    }
    return {};
  }

  // Keys of hosts begin with their names, which are no files.
  Attempt<void> take_tls_key(const std::string& text) {
    std::error_code ignored;
    if (text.find('=') != std::string::npos && !std::filesystem::exists(text, ignored)) {
      return add_tls_host(text, args_.access);
    }
    args_.nbd.tls_key = whole(text);
    return {};
  }

  static void greet(const server::Server& server, const server::ServerConfig& config) {
    greet_nbd(server, config.nbd);
    greet_nvme(server);
    greet_guests(server);
  }

  static void greet_nbd(const server::Server& server, const server::NbdConfig& nbd) {
    const server::DoorOptions& doors = server.door_options();
    const server::NbdWay way{.is_secure = doors.keys != nullptr || doors.certificate != nullptr,
                             .user = doors.keys != nullptr ? doors.keys->names().front() : ""};
    for (const env::Address& at : server.doors().nbd()) {
      for (const auto& drive : server.drives()) {
        if (!drive->problem.empty() || !drive->space.owner.empty()) continue;
        const std::string uri = server::nbd_uri(at, drive->name, way);
        say(fmt::format("serving {} as {} at {}\n", drive::with_size_texts(drive->text),
                        drive->name, at.text()));
        say(fmt::format("  nbdinfo '{}'\n", way.is_secure ? with_credentials(uri, nbd) : uri));
        if (way.is_secure) continue;
        say(fmt::format("  qemu-system-x86_64 -drive file='{}',format=raw,if=virtio\n", uri));
      }
    }
  }
  // A client finds ca-cert.pem, and if it must show one its own certificate, in a folder.
  static std::string with_credentials(const std::string& uri, const server::NbdConfig& nbd) {
    const char joint = uri.find('?') == std::string::npos ? '?' : '&';
    if (nbd.tls_psk.empty()) return fmt::format("{}{}tls-certificates=FOLDER", uri, joint);
    return fmt::format("{}{}tls-psk-file={}", uri, joint, nbd.tls_psk);
  }

  static void greet_nvme(const server::Server& server) {
    const std::vector<env::Address>& listening = server.nvme().listening();
    for (size_t i = 0; i < listening.size(); ++i) {
      const server::ListenerOptions& listener = server.options().listeners[i];
      const server::Reach near = server::reach(listening[i]);
      for (const std::string& nqn : nqns_of(server.options())) {
        const auto& only = listener.subsystems;
        if (!only.empty() && std::ranges::find(only, nqn) == only.end()) continue;
        for (const auto& drive : server.drives()) {
          if (drive->nqn != nqn || !drive->problem.empty()) continue;
          say(fmt::format("serving {} as {}, namespace {} at {}\n",
                          drive::with_size_texts(drive->text), drive->name, drive->space.nsid,
                          listening[i].text()));
        }
        say(fmt::format("serving {} at {}\n", nqn, listening[i].text()));
        say(fmt::format("  nvme connect -t tcp -a {} -s {} -n {}{}\n", near.host, near.port, nqn,
                        listener.tls ? " --tls" : ""));
      }
    }
  }

  static void greet_guests(const server::Server& server) {
    for (const server::VfioController& controller : server.doors().vfio()) {
      say(fmt::format("serving {} as an NVMe controller at {}\n", comma_list(controller.drives),
                      controller.socket));
      if (controller.drives.size() == 1) {
        say(fmt::format("  qemu-system-x86_64 $(cairn drive qemu-args {}) ...\n",
                        controller.drives.front()));
      } else {
        say(fmt::format("  qemu-system-x86_64 -device '{}' ... (with shared memory)\n",
                        server::vfio_qemu_device(controller.socket)));
      }
    }
    for (const auto& drive : server.drives()) {
      if (!drive->vhost) continue;
      say(
          fmt::format("serving {0} to a virtual machine at {1}\n"
                      "  qemu-system-x86_64 $(cairn drive qemu-args {0}) ...\n",
                      drive->name, drive->vhost->at.path));
    }
  }

  ServeArgs args_;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_serve(CLI::App& app) { return std::make_unique<ServeCommand>(app); }

}  // namespace cairn::apps
