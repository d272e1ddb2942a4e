// SPDX-License-Identifier: Apache-2.0
#include "apps/serve/serve_args.h"

#include <fmt/format.h>

#include <utility>

#include "apps/serve/run.h"
#include "base/words.h"
#include "nvme/controller/namespace_ids.h"
#include "server/common/default_nqn.h"

namespace cairn::apps {

namespace {

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

}  // namespace

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
  if (!args.http.empty()) config.http = args.http;
  if (!args.http_token.empty()) config.http_token = args.http_token;
  if (!args.on_event.empty()) config.on_event = args.on_event;
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

}  // namespace cairn::apps
