// SPDX-License-Identifier: Apache-2.0
// What the command line of `cairn serve` says, and how it becomes a server's configuration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/serve/access_args.h"
#include "base/problem.h"
#include "base/units.h"
#include "env/address.h"
#include "nvme/controller/registry.h"
#include "server/config/keys.h"
#include "server/config/rack_options.h"
#include "server/open/store_uri.h"

namespace cairn::apps {

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
  std::vector<env::Address> http;
  std::string http_token;
  std::string on_event;
  std::optional<Duration> nbd_idle_timeout;
  std::optional<Duration> drain_timeout;
  int nbd_connections_max = 0;  // 0: not said
  bool format = false;
  bool read_only = false;
  std::optional<server::StoreUri> rack;
  std::string rack_name;
  std::vector<server::RackShelf> shelves;
};

// What was said wins over what a file put into `config`. The Problem: both do not go together.
Attempt<void> merge(const ServeArgs& args, server::ServerConfig& config);

}  // namespace cairn::apps
