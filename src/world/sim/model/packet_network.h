// SPDX-License-Identifier: Apache-2.0
// PacketNetwork: streams of the simulated world over a modelled network of switches.
//
//   ClusterOptions options;
//   options.network.model = packet_network(net::clos({}), parameters);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/net/network.h"
#include "world/sim/model/model.h"

namespace cairn::sim {

// Node i of the cluster is host i of the topology. Each segment of a stream is a flow of the model,
// and meets all others in the switches' queues. What carries no data (a connection's first and last
// messages, credits) takes as long as on an idle network; inside a node nothing leaves it.
class PacketNetwork final : public NetworkModel, private net::FlowSink {
 public:
  // Both passed their checks; packets, not the fluid mode.
  PacketNetwork(net::Topology topology, const net::Parameters& parameters);

  Time deliver(Time now, uint32_t from, uint32_t to, uint64_t bytes) override;
  std::optional<Time> send(Time now, uint32_t from, uint32_t to, uint64_t bytes,
                           uint64_t tag) override;
  Time next_event() const override;
  void advance(Time now, std::vector<uint64_t>& arrived) override;

  const net::Counters& counters() const { return network_.counters(); }

 private:
  void flow_received(uint64_t flow) override;
  void flow_done(const net::FlowDone& /*done*/) override {}

  const net::Topology topology_;
  const net::Parameters parameters_;
  net::Network network_;
  std::map<std::pair<uint32_t, uint32_t>, Duration> idle_;  // from one host to another
  uint64_t flows_ = 0;                                      // so far
  std::unordered_map<uint64_t, uint64_t> tags_;             // of those on their way
  std::vector<uint64_t> received_;
};

// For ClusterOptions::network.model.
std::function<std::unique_ptr<NetworkModel>(uint64_t seed)> packet_network(
    net::Topology topology, net::Parameters parameters);

}  // namespace cairn::sim
