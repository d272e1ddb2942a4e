// SPDX-License-Identifier: Apache-2.0
// What discovery services said, for people and scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "env/address.h"
#include "fabric/host/discovery.h"

namespace cairn::apps {

struct DiscoveredService {
  env::Address address;
  fabric::DiscoveryLog log;
  std::string problem;  // it could not be asked; empty: it was
};

// The first service's log as nvme-cli prints it, and what others said under "referred".
nlohmann::ordered_json json_of(std::span<const DiscoveredService> services);
// A line per subsystem, with the URI to use it by.
std::string text_of(std::span<const DiscoveredService> services);

}  // namespace cairn::apps
