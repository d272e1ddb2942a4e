// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration file that are about a box: [box], [[listener]], [[subsystem]] and
// [rack]. docs/box.md explains each.
#pragma once

#include <string>

#include "config/config.h"
#include "server/common/options.h"
#include "server/config/rack_options.h"

namespace cairn::server {

struct BoxConfig {
  BoxOptions box;
  RackOptions rack;
  std::string state;    // folder; empty: changes are not kept
  std::string control;  // socket, or "off"; empty: made from the first port
};

// `config` outlives the section.
void add_box_keys(config::Section& root, BoxConfig& config);

// The keys of a namespace and of an ANA group, as a configuration and a kept state have them.
config::Section namespace_keys(nvme::NamespaceOptions& options);
struct AnaGroupOption {
  uint32_t group = 1;
  nvme::AnaState state = nvme::AnaState::kOptimized;
};
config::Section ana_keys(AnaGroupOption& option);

}  // namespace cairn::server
