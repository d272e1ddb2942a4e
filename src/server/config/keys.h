// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration file that are about a server: [server], [nbd], [[listener]],
// [[subsystem]] and [rack]. docs/box.md explains each.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "config/config.h"
#include "env/address.h"
#include "server/common/options.h"
#include "server/config/rack_options.h"

namespace cairn::server {

// The NBD door, with paths as they were written.
struct NbdConfig {
  std::vector<env::Address> addresses;
  std::string tls_psk;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  int connections_max = 1024;
  Duration idle_timeout = 600_s;
};

struct ServerConfig {
  ServerOptions server;
  NbdConfig nbd;
  RackOptions rack;
  std::string state;                    // folder; empty: changes are not kept
  std::vector<std::string> vfio_user;   // as the command line has them
  std::vector<std::string> vhost_user;  // likewise
  std::string control;                  // socket, or "off"; empty: one per process
  std::vector<env::Address> http;       // where metrics and health can be looked at
  std::string http_token;               // a file; empty: none
  std::string on_event;                 // a command, run when something changed; empty: none
};

// `config` outlives the section.
void add_server_keys(config::Section& root, ServerConfig& config);

// The keys of a namespace and of an ANA group, as a configuration and a kept state have them.
config::Section namespace_keys(nvme::NamespaceOptions& options);
struct AnaGroupOption {
  uint32_t group = 1;
  nvme::AnaState state = nvme::AnaState::kOptimized;
};
config::Section ana_keys(AnaGroupOption& option);

}  // namespace cairn::server
