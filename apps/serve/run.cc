// SPDX-License-Identifier: Apache-2.0
#include "apps/serve/run.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "apps/common/control.h"
#include "apps/common/http.h"
#include "apps/common/log.h"
#include "apps/common/output.h"
#include "drive/size_text.h"
#include "server/config/shelf_files.h"
#include "server/config/state_folder.h"
#include "server/control/health_json.h"
#include "server/open/key_file.h"
#include "server/open/store.h"
#include "server/serve/serve.h"
#include "world/machine/facts.h"
#include "world/machine/world.h"

namespace cairn::apps {

namespace {

task::Task<void> serve_in(env::Env& env, const server::ServeOptions& options,
                          Attempt<void>& outcome) {
  outcome = co_await server::serve(env, options);
}

// What the NBD door's clients prove themselves with, read from its files.
struct NbdSecrets {
  std::optional<door::nbd::NbdKeys> keys;
  std::optional<tls::Certificate> certificate;

  Attempt<void> read(const server::NbdConfig& nbd) {
    if (!nbd.tls_psk.empty()) {
      Attempt<door::nbd::NbdKeys> read = server::read_psk_file(nbd.tls_psk);
      if (!read) return std::unexpected(read.error());
      keys.emplace(std::move(*read));
    }
    if (nbd.tls_cert.empty() && nbd.tls_key.empty() && nbd.tls_ca.empty()) return {};
    if (nbd.tls_cert.empty() || nbd.tls_key.empty()) {
      return refuse(
          "a certificate needs its key: give both, --tls-cert FILE and --tls-key FILE; the key of "
          "an "
          "NVMe host is --tls-key HOSTNQN=FILE");
    }
    if (keys) {
      return refuse("clients prove themselves in one way: leave out --tls-psk or --tls-cert");
    }
    Attempt<tls::Certificate> read = server::read_certificate(
        {.chain = nbd.tls_cert, .key = nbd.tls_key, .clients = nbd.tls_ca});
    if (!read) return std::unexpected(read.error());
    certificate.emplace(std::move(*read));
    return {};
  }
};

Attempt<server::DoorOptions> door_options(const server::ServerConfig& config,
                                          const NbdSecrets& secrets) {
  server::DoorOptions doors{.nbd = config.nbd.addresses,
                            .nbd_connections_max = config.nbd.connections_max,
                            .nbd_idle_timeout = config.nbd.idle_timeout};
  if (secrets.keys) doors.keys = &*secrets.keys;
  if (secrets.certificate) doors.certificate = &*secrets.certificate;
  for (const std::string& text : config.vfio_user) {
    Attempt<server::VfioArgs> args = server::parse_vfio_args(text);
    if (!args) return refuse(fmt::format("vfio_user: {}", args.error().text));
    doors.vfio.push_back(std::move(*args));
  }
  for (const std::string& text : config.vhost_user) {
    Attempt<server::GuestSocket> socket = server::parse_guest_socket(text);
    if (!socket) return refuse(fmt::format("vhost_user: {}", socket.error().text));
    doors.vhost.push_back(std::move(*socket));
  }
  return doors;
}

// Local sockets that are there while it serves.
class Sockets {
 public:
  ~Sockets() {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }
  void add(const std::string& path) { paths_.push_back(path); }
  void remove(const std::string& path) {
    std::erase(paths_, path);
    ::unlink(path.c_str());
  }
  void add_all(const server::Server& server) {
    for (const env::Address& at : server.doors().nbd()) {
      if (at.family == env::Address::Family::kLocal) add(at.path);
    }
    for (const server::VfioController& each : server.doors().vfio()) add(each.socket);
    for (const auto& drive : server.drives()) {
      if (drive->vhost) add(drive->vhost->at.path);
    }
  }

 private:
  std::vector<std::string> paths_;
};

void say_what_is_not_served(const server::Server& server) {
  for (const auto& drive : server.drives()) {
    if (drive->problem.empty()) continue;
    say(fmt::format("not serving {} as {}, which could not be opened: {}\n",
                    drive::with_size_texts(drive->text), drive->name,
                    server::last_line(drive->problem)));
  }
}

server::RackHooks rack_hooks(const server::ServerHooks& hooks) {
  return {
      .open_store = [](env::Env& env,
                       server::StoreUri uri) { return server::open_store(env, std::move(uri)); },
      .log = hooks.log,
      .remove_file = server::remove_shelf_file,
      .sweep = server::sweep_shelf};
}

}  // namespace

Attempt<int> run_server(const config::Settings& settings, const server::ServerConfig& config,
                        std::function<void(const server::Server&)> greet) {
  if (const Attempt<void> checked = machine::check_cores(settings.cores, machine::gather_cpu());
      !checked) {
    return std::unexpected(checked.error());
  }
  ::umask(0077);  // drives, sockets and state are this user's alone
  NbdSecrets secrets;
  if (const Attempt<void> read = secrets.read(config.nbd); !read) {
    return std::unexpected(read.error());
  }
  Attempt<server::DoorOptions> doors = door_options(config, secrets);
  if (!doors) return std::unexpected(doors.error());
  Sockets sockets;
  std::optional<server::StateFolder> state;
  server::ServeOptions options{.server = config.server, .doors = std::move(*doors)};
  options.hooks = {.log = log_to_stderr(settings.log_level),
                   .keep = {},
                   .read_key = server::read_key_file,
                   .read_tls_key = server::read_tls_key_file,
                   .door_changed = [&sockets](const std::string& socket, bool is_there) {
                     is_there ? sockets.add(socket) : sockets.remove(socket);
                   }};
  options.rack = config.rack;
  for (server::RackShelf& shelf : options.rack.shelves) {
    if (!shelf.folder.empty()) shelf.folder = std::filesystem::absolute(shelf.folder).string();
  }
  options.rack_hooks = rack_hooks(options.hooks);
  if (!config.state.empty()) {
    Attempt<server::StateFolder> opened = server::StateFolder::open(config.state);
    if (!opened) return std::unexpected(opened.error());
    state.emplace(std::move(*opened));
    Attempt<server::ServerChanges> changes = state->load();
    if (!changes) return std::unexpected(changes.error());
    options.changes = std::move(*changes);
    options.server.reservations = state->path();
    options.hooks.keep = [&state](const server::ServerChanges& all) { return state->save(all); };
  }
  options.control_path = control_path(config.control, "server");
  options.events = {.folder = state ? state->path() : "", .command = config.on_event};
  options.http = config.http;
  Attempt<std::optional<crypto::Digest>> token = read_http_token(config.http_token);
  if (!token) return std::unexpected(token.error());
  options.http_token = std::move(*token);
  options.http_ready = [&sockets](const std::vector<env::Address>& addresses) {
    std::vector<std::string> local;
    greet_http(addresses, local);
    for (const std::string& path : local) sockets.add(path);
  };
  options.ready = [&](const server::Server& server, const std::string& control) {
    if (!control.empty()) {
      sockets.add(control);
      ::chmod(control.c_str(), 0600);
    }
    sockets.add_all(server);
    say_what_is_not_served(server);
    greet(server);
    say("Ctrl-C or SIGTERM stops it in order, a second one at once.\n");
    finish_output();
  };
  Attempt<std::unique_ptr<env::World>> world =
      machine::make_world(settings.io, config::world_options(settings));
  if (!world) return std::unexpected(world.error());
  Attempt<void> outcome;
  const Result<void> ran =
      (*world)->run([&](env::Env& env) { return serve_in(env, options, outcome); });
  if (!ran) return refuse(ran.error().text());
  if (!outcome) return std::unexpected(outcome.error());
  return kExitOk;
}

std::vector<std::string> nqns_of(const server::ServerOptions& options) {
  std::vector<std::string> names;
  names.reserve(options.subsystems.size());
  for (const server::SubsystemConfig& each : options.subsystems) names.push_back(each.options.nqn);
  return names;
}

}  // namespace cairn::apps
