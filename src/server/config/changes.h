// SPDX-License-Identifier: Apache-2.0
// What was changed while a server ran, relative to its configuration. Applied again after a
// restart, so that a configuration may be edited and live changes still hold.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nvme/controller/registry.h"
#include "nvme/format/ana_format.h"
#include "rack/types.h"

namespace cairn::server {

struct HostAccess {
  bool any = true;
  std::vector<std::string> hosts;  // NQNs, when not any
};

// Where the layers of a drive are that runs in a box.
struct MovedLayers {
  std::string control;           // the box's socket
  std::string uri;               // the way to them
  std::string layers;            // the stack there, as it was here
  uint32_t transfer_blocks = 0;  // the largest request there was; none is larger till they are back
};

struct SubsystemChanges {
  std::set<uint32_t> removed;                        // namespaces of the configuration
  std::map<uint32_t, nvme::NamespaceOptions> added;  // by nsid, with all their ids
  std::map<uint32_t, uint64_t> resized;              // bytes, of the configuration's namespaces
  // What drives of the configuration became, with the ids they had.
  std::map<uint32_t, nvme::NamespaceOptions> edited;
  std::map<uint32_t, MovedLayers> moved;  // drives added or edited
  std::optional<HostAccess> access;
  std::map<uint32_t, nvme::AnaState> ana;  // by group
  // Space that was given away; the namespace of each is among those added.
  std::map<rack::ContractId, rack::Contract> contracts;
  // Contracts that have ended, and whose file may still be there: their space is not free yet.
  std::map<rack::ContractId, rack::Contract> ended;
  // The nsid that was given last; the next one is above it, so that no host remembers it. 0: none
  // was.
  uint32_t last_nsid = 0;

  bool empty() const {
    return removed.empty() && added.empty() && resized.empty() && edited.empty() && moved.empty() &&
           !access && ana.empty() && contracts.empty() && ended.empty() && last_nsid == 0;
  }
};

// By NQN.
using ServerChanges = std::map<std::string, SubsystemChanges, std::less<>>;

}  // namespace cairn::server
