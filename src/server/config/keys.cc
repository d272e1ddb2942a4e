// SPDX-License-Identifier: Apache-2.0
#include "server/config/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/duration.h"
#include "base/uuid.h"
#include "base/words.h"
#include "nvme/format/limits.h"
#include "server/common/access_keys.h"
#include "server/control/control_format.h"
#include "server/control/control_path.h"
#include "server/monitor/http_address.h"
#include "server/open/is_stack.h"
#include "server/open/take_drive.h"

namespace cairn::server {

namespace {

using Take = std::function<Attempt<void>(const std::string&)>;

Take into(Duration& target, Attempt<Duration> (*parse)(std::string_view) = &parse_duration) {
  return [&target, parse](const std::string& text) -> Attempt<void> {
    const Attempt<Duration> value = parse(text);
    if (!value) return std::unexpected(value.error());
    target = *value;
    return {};
  };
}

Take into(std::array<uint8_t, 16>& target) {
  return [&target](const std::string& text) -> Attempt<void> {
    const auto id = parse_uuid(text);
    if (!id || *id == Uuid{}) {
      return refuse(fmt::format("{} is not 32 hexadecimal digits, some not 0", in_quotes(text)));
    }
    target = *id;
    return {};
  };
}

// Printable ASCII, as Identify Controller has it.
Take into(std::string& target, size_t size_max) {
  return [&target, size_max](const std::string& text) -> Attempt<void> {
    const bool printable = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
    if (text.empty() || text.size() > size_max || !printable) {
      return refuse(
          fmt::format("{} is not 1 to {} printable ASCII characters", in_quotes(text), size_max));
    }
    target = text;
    return {};
  };
}

config::Section server_listener_keys(std::vector<ListenerOptions>& listeners) {
  config::Section keys = listener_keys(listeners);
  ListenerOptions& listener = listeners.back();
  keys.taken_list(
      "subsystems", kSubsystemsMax, [] {},
      [&listener](const std::string& text) -> Attempt<void> {
        listener.subsystems.push_back(text);
        return {};
      });
  return keys;
}

Attempt<void> take_nqn(const std::string& text, ServerOptions& server, SubsystemConfig& into) {
  if (Attempt<void> named = check_subsystem_nqn(text); !named) return named;
  for (const SubsystemConfig& other : server.subsystems) {
    if (other.options.nqn == text) {
      return refuse(
          fmt::format("{} is there twice: give each subsystem its own name", in_quotes(text)));
    }
  }
  into.options.nqn = text;
  return {};
}

// Two of one number or on one file are told at the second.
config::Section namespace_keys_of(ServerOptions& server, SubsystemConfig& subsystem) {
  nvme::NamespaceOptions& options = subsystem.namespaces.emplace_back();
  config::Section keys = namespace_keys(options);
  keys.whole([&server, &subsystem, &options]() -> Attempt<void> {
    for (const nvme::NamespaceOptions& other : subsystem.namespaces) {
      if (&other != &options && other.nsid != 0 && other.nsid == options.nsid) {
        return refuse(
            fmt::format("nsid {} is there twice: give each namespace its own", options.nsid));
      }
    }
    for (const SubsystemConfig& each : server.subsystems) {
      for (const nvme::NamespaceOptions& other : each.namespaces) {
        if (&other != &options && !options.drive.path.empty() &&
            other.drive.path == options.drive.path) {
          return refuse(fmt::format("the file {} is used twice: give each namespace its own",
                                    in_quotes(options.drive.path)));
        }
      }
    }
    return {};
  });
  return keys;
}

config::Section subsystem_keys(ServerOptions& server) {
  SubsystemConfig& subsystem = server.subsystems.emplace_back();
  nvme::SubsystemOptions& options = subsystem.options;
  config::Section keys;
  keys.taken("nqn", [&server, &subsystem](
                        const std::string& text) { return take_nqn(text, server, subsystem); })
      .required();
  keys.taken("serial", into(options.serial, 20)).taken("model", into(options.model, 40));
  add_access_keys(keys, subsystem);
  keys.integer("queues_max", options.queues_max, {.min = 1, .max = 1024});
  keys.integer("queue_entries_max", options.queue_entries_max, {.min = 2, .max = 1024});
  keys.integer("controllers_max", options.controllers_max, {.min = 1, .max = 65519});
  keys.integer("controller_id_min", options.controller_id_min, {.min = 1, .max = 65519});
  keys.integer("controller_id_max", options.controller_id_max, {.min = 1, .max = 65519});
  keys.tables("namespace", nvme::kNamespacesMax,
              [&server, &subsystem] { return namespace_keys_of(server, subsystem); });
  keys.tables("ana", nvme::kAnaGroupsMax, [&subsystem] {
    const auto option = std::make_shared<AnaGroupOption>();
    config::Section ana = ana_keys(*option);
    ana.whole([&subsystem, option]() -> Attempt<void> {
      if (subsystem.ana.emplace(option->group, option->state).second) return {};
      return refuse(fmt::format("group {} is there twice", option->group));
    });
    return ana;
  });
  return keys;
}

void add_doorbell_keys(config::Section& keys, fabric::DoorbellOptions& doorbell) {
  keys.taken("batching", [&doorbell](const std::string& text) -> Attempt<void> {
    const auto mode = fabric::parse_batching(text);
    if (!mode) return refuse(fmt::format("takes off, fixed or adaptive, not {}", in_quotes(text)));
    doorbell.mode = *mode;
    return {};
  });
  keys.integer("caravan", doorbell.count, {.min = 1, .max = 1024});
  keys.integer("caravan_bytes", doorbell.bytes, {.min = 1, .max = 1 << 20});
  keys.taken("doorbell", into(doorbell.delay, &parse_short_duration));
}

}  // namespace

config::Section namespace_keys(nvme::NamespaceOptions& options) {
  config::Section keys;
  keys.taken("drive",
             [&options](const std::string& text) -> Attempt<void> {
               Attempt<void> taken = take_drive(text, LookUp::kWhenOpened, options);
               if (!taken && is_stack(text))
                 return refuse(fmt::format(":\n{}", taken.error().text));
               return taken;
             })
      .required();
  keys.taken("name", [&options](const std::string& text) -> Attempt<void> {
    if (!is_drive_name(text)) {
      return refuse(fmt::format(
          "{} is no name for a drive: write letters, digits, '_', '.' and '-'", in_quotes(text)));
    }
    options.name = text;
    return {};
  });
  keys.integer("nsid", options.nsid, {.min = 1, .max = nvme::kNsidMax});
  keys.taken("uuid", into(options.uuid)).taken("nguid", into(options.nguid));
  keys.integer("ana_group", options.ana_group, {.min = 1, .max = nvme::kAnaGroupsMax});
  keys.boolean("read_only", options.read_only);
  return keys;
}

config::Section ana_keys(AnaGroupOption& option) {
  config::Section keys;
  keys.integer("group", option.group, {.min = 1, .max = nvme::kAnaGroupsMax}).required();
  keys.taken("state",
             [&option](const std::string& text) -> Attempt<void> {
               const Attempt<nvme::AnaState> state = parse_ana(text);
               if (!state) return std::unexpected(state.error());
               option.state = *state;
               return {};
             })
      .required();
  return keys;
}

namespace {

Attempt<void> take_nbd_address(const std::string& text, NbdConfig& nbd) {
  Result<env::Address> address = env::Address::parse(text);
  if (!address) {
    return refuse(fmt::format("{} is no address: {}; write unix:/run/cairn.sock or 127.0.0.1:10809",
                              in_quotes(text), address.error().what()));
  }
  nbd.addresses.push_back(std::move(*address));
  return {};
}

config::Section nbd_keys(NbdConfig& nbd) {
  config::Section keys;
  keys.taken_list(
      "addresses", kListenersMax, [] {},
      [&nbd](const std::string& text) { return take_nbd_address(text, nbd); });
  keys.text("tls_psk", nbd.tls_psk);
  keys.text("tls_cert", nbd.tls_cert);
  keys.text("tls_key", nbd.tls_key);
  keys.text("tls_ca", nbd.tls_ca);
  keys.integer("connections_max", nbd.connections_max, {.min = 1, .max = 1 << 20});
  keys.taken("idle_timeout", into(nbd.idle_timeout));
  return keys;
}

// Doors for virtual machines, in the words of the command line.
void add_guest_keys(config::Section& keys, ServerConfig& config) {
  const auto add = [&keys](const char* name, std::vector<std::string>& into) {
    keys.taken_list(
        name, kListenersMax, [] {},
        [&into](const std::string& text) -> Attempt<void> {
          into.push_back(text);
          return {};
        });
  };
  add("vfio_user", config.vfio_user);
  add("vhost_user", config.vhost_user);
}

}  // namespace

void add_server_keys(config::Section& root, ServerConfig& config) {
  ServerOptions& server = config.server;
  config::Section keys;
  keys.text("state", config.state);
  keys.taken("control", [&config](const std::string& text) -> Attempt<void> {
    const Attempt<std::string> path = check_control_path(text);
    if (!path) return std::unexpected(path.error());
    config.control = text;
    return {};
  });
  keys.taken_list(
      "http", kListenersMax, [] {},
      [&config](const std::string& text) -> Attempt<void> {
        Attempt<env::Address> at = parse_http_address(text);
        if (!at) return std::unexpected(at.error());
        config.http.push_back(std::move(*at));
        return {};
      });
  keys.text("http_token", config.http_token);
  keys.text("on_event", config.on_event);
  keys.taken("drain_timeout", into(server.drain_timeout));
  keys.taken("handshake_timeout", into(server.target.handshake_timeout));
  keys.taken("write_timeout", into(server.target.write_timeout));
  keys.taken("data_timeout", into(server.target.data_timeout));
  keys.taken("linger_timeout", into(server.target.linger_timeout));
  env::ConnectionLimits& connections = server.target.connections;
  keys.integer("connections_max", connections.connections_max, {.min = 1, .max = 1 << 20});
  keys.integer("connections_unproven_max", connections.unproven_max, {.min = 1, .max = 1 << 20});
  keys.integer("connections_reserved", connections.reserved, {.min = 0, .max = 1 << 20});
  keys.boolean("header_digest", server.target.header_digest);
  keys.boolean("data_digest", server.target.data_digest);
  add_doorbell_keys(keys, server.target.doorbell);
  add_guest_keys(keys, config);
  root.table("server", std::move(keys));
  root.table("nbd", nbd_keys(config.nbd));
  root.tables("listener", kListenersMax,
              [&server] { return server_listener_keys(server.listeners); });
  root.tables("subsystem", kSubsystemsMax, [&server] { return subsystem_keys(server); });
  add_rack_keys(root, config.rack);
}

}  // namespace cairn::server
