// SPDX-License-Identifier: Apache-2.0
// System: drives and a network by the models of Cairn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/flash/parameters.h"
#include "model/net/parameters.h"
#include "model/net/topology.h"
#include "snis/models.h"

namespace cairn::snis {

struct System {
  flash::Parameters drive;  // all alike
  double occupancy = 0;     // part of each drive that was written before, 0 to 1
  net::Topology topology;
  net::Parameters network;
  // The host of each target and of each initiator. Targets may share one: drives of a box.
  std::vector<uint32_t> target_hosts;
  std::vector<uint32_t> initiator_hosts;
};

// What is wrong with it and what to do; nothing when it can be simulated.
std::optional<std::string> check(const System& system);

// Hosts as far apart as the reference of the paper puts them: targets on the first hosts,
// initiators on hosts of the rest of the network, spread evenly. Needs at least two hosts.
void place_apart(System& system, uint32_t targets, uint32_t initiators);

class SystemModels final : public Models {
 public:
  // `system` passed check() and outlives the models.
  explicit SystemModels(const System& system);

  uint32_t targets() const override { return static_cast<uint32_t>(system_.target_hosts.size()); }
  std::unique_ptr<Drive> make_drive(uint32_t target) const override;
  std::unique_ptr<Fabric> make_fabric() const override;

 private:
  const System& system_;
  std::vector<bool> is_spine_;  // by node: a switch as far from hosts as any
};

}  // namespace cairn::snis
