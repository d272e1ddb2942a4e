// SPDX-License-Identifier: Apache-2.0
// Which way packets go: shortest paths that first climb and then descend, chosen by a hash.
#pragma once

#include <cstdint>
#include <vector>

#include "model/net/topology.h"

namespace cairn::net {

// What the hash that chooses among equal paths sees.
struct FiveTuple {
  uint32_t source = 0;  // node numbers
  uint32_t destination = 0;
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
};

// The same tuple and seed give the same number on every machine.
uint32_t ecmp_hash(const FiveTuple& tuple, uint32_t seed);

// Switches have a rank; a path never climbs again after it has descended, so packets that wait for
// each other's buffers can never form a circle, and PAUSE cannot stop the network for good.
//
// Ports are counted 2 * link for the direction from a to b, and 2 * link + 1 for the other.
class Routes {
 public:
  // In which order a switch has the neighbours that the hash chooses from.
  enum class Order : uint8_t { kAscending, kDescending };

  // Borrows the topology, which has no problem() and outlives the routes. Switch n hashes with
  // seed + n.
  Routes(const Topology& topology, uint32_t seed, Order order = Order::kAscending);

  // Appends the ports that a packet of `tuple` leaves through, the first being the source's. Two
  // switches with the same choice choose independently.
  void append_path(const FiveTuple& tuple, std::vector<uint32_t>& ports);

  uint32_t node_of(uint32_t port) const { return port_node_[port]; }
  uint32_t peer_of(uint32_t port) const { return port_node_[port ^ 1]; }
  size_t ports() const { return port_node_.size(); }

 private:
  // Hops to the destination, by node and by whether the packet may still climb.
  struct Distances {
    std::vector<uint16_t> climbing;
    std::vector<uint16_t> descending;
  };

  void rank_by_hosts();
  void rank_by_root();
  bool all_reached();
  const Distances& towards(uint32_t destination);
  bool climbs(uint32_t from, uint32_t to) const { return rank_[to] > rank_[from]; }

  const Topology& topology_;
  uint32_t seed_;
  std::vector<uint32_t> port_node_;
  std::vector<std::vector<uint32_t>> ports_of_;  // by node, neighbours in order
  std::vector<uint64_t> rank_;                   // all different
  std::vector<Distances> distances_;             // by destination node; empty until needed
};

}  // namespace cairn::net
