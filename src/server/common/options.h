// SPDX-License-Identifier: Apache-2.0
// What a server serves, as a file or the command line says it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "env/address.h"
#include "fabric/target/options.h"
#include "nvme/controller/registry.h"
#include "nvme/format/ana_format.h"

namespace cairn::server {

inline constexpr size_t kListenersMax = 64;
inline constexpr size_t kSubsystemsMax = 256;
inline constexpr size_t kHostsMax = 1024;  // of one subsystem

struct ListenerOptions {
  env::Address address;
  env::Address advertise;               // port 0: as the host reached us
  std::vector<std::string> subsystems;  // NQNs served here; none: all
  bool or_any_port = false;             // where the port is taken, another that is free
  bool tls = false;                     // nobody is heard without
};

// A host with keys, in files that are read when the server starts.
struct HostOptions {
  std::string nqn;
  std::string key;             // empty: it need not authenticate
  std::string controller_key;  // empty: the server cannot prove itself to it
  std::string tls_key;         // empty: it cannot come through TLS
};

struct SubsystemConfig {
  nvme::SubsystemOptions options;
  std::vector<HostOptions> hosts;
  nvme::AuthMeans means;
  Duration authentication_timeout = 30_s;
  std::vector<nvme::NamespaceOptions> namespaces;
  std::map<uint32_t, nvme::AnaState> ana;  // of groups that are not optimized
};

struct ServerOptions {
  std::vector<ListenerOptions> listeners;
  std::vector<SubsystemConfig> subsystems;
  fabric::TargetOptions target;
  std::string reservations;       // a folder that keeps those with PTPL; empty: none are kept
  Duration drain_timeout = 10_s;  // how long commands in flight may take once we are to end
  bool format = false;            // stacks may take drives that are not blank, when it starts
  // Drives' texts as they were typed, by what they became: what is wrong is shown in them.
  std::map<std::string, std::string> typed;
};

}  // namespace cairn::server
