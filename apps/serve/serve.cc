// SPDX-License-Identifier: Apache-2.0
// `cairn serve`: drives and stacks of services at every door.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/common/command.h"
#include "apps/common/control.h"
#include "apps/common/http.h"
#include "apps/serve/access_args.h"
#include "apps/serve/greeting.h"
#include "apps/serve/run.h"
#include "apps/serve/serve_args.h"
#include "base/duration.h"
#include "base/words.h"
#include "server/common/access_keys.h"
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

class ServeCommand final : public Command {
 public:
  explicit ServeCommand(CLI::App& app) {
    add_drive_options(app);
    add_nvme_options(app);
    add_nbd_options(app);
    add_guest_options(app);
    add_rack_options(app);
    add_text(app, "--state DIR", args_.state, "keep live changes and reservations here");
    add_control(app, args_.control);
    add_http(app, args_.http, args_.http_token);
    add_on_event(app, args_.on_event);
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
               "nvme-tcp://HOST/NQN, volume:NAME, or services over such; several allowed",
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

  ServeArgs args_;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_serve(CLI::App& app) { return std::make_unique<ServeCommand>(app); }

}  // namespace cairn::apps
