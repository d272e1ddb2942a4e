// SPDX-License-Identifier: Apache-2.0
#include "model/net/routes.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/check.h"

namespace cairn::net {

namespace {

constexpr uint16_t kFar = UINT16_MAX;

// Hops from the nearest of `from` over all nodes; hosts are ends, not ways.
std::vector<uint32_t> hops_from(const Topology& t,
                                const std::vector<std::vector<uint32_t>>& ports_of,
                                const std::vector<uint32_t>& port_node,
                                const std::vector<uint32_t>& from) {
  std::vector<uint32_t> hops(t.nodes().size(), UINT32_MAX);
  std::vector<uint32_t> queue = from;
  for (const uint32_t node : from) hops[node] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint32_t node = queue[i];
    if (hops[node] > 0 && !t.nodes()[node].is_switch) continue;
    for (const uint32_t port : ports_of[node]) {
      const uint32_t peer = port_node[port ^ 1];
      if (hops[peer] != UINT32_MAX) continue;
      hops[peer] = hops[node] + 1;
      queue.push_back(peer);
    }
  }
  return hops;
}

uint32_t mix_in(uint32_t hash, uint32_t word) {
  word = std::rotl(word * 0xcc9e2d51U, 15) * 0x1b873593U;
  return std::rotl(hash ^ word, 13) * 5 + 0xe6546b64U;
}

// Addresses as the reference gives them to its hosts.
uint32_t address(uint32_t node) {
  return 0x0b000001U + (node / 256) * 0x10000U + (node % 256) * 0x100U;
}

}  // namespace

// Appleby's MurmurHash3 (32 bits) over source, destination and ports.
uint32_t ecmp_hash(const FiveTuple& tuple, uint32_t seed) {
  uint32_t hash = mix_in(seed, address(tuple.source));
  hash = mix_in(hash, address(tuple.destination));
  hash = mix_in(hash, tuple.source_port | uint32_t{tuple.destination_port} << 16);
  hash ^= 12;  // bytes of the tuple
  hash = (hash ^ hash >> 16) * 0x85ebca6bU;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35U;
  return hash ^ hash >> 16;
}

Routes::Routes(const Topology& topology, uint32_t seed, Order order)
    : topology_(topology),
      seed_(seed),
      ports_of_(topology.nodes().size()),
      distances_(topology.nodes().size()) {
  for (const Link& link : topology.links()) {
    ports_of_[link.a].push_back(static_cast<uint32_t>(port_node_.size()));
    port_node_.push_back(link.a);
    ports_of_[link.b].push_back(static_cast<uint32_t>(port_node_.size()));
    port_node_.push_back(link.b);
  }
  for (std::vector<uint32_t>& ports : ports_of_) {
    std::ranges::sort(ports, {}, [this](uint32_t port) { return std::pair(peer_of(port), port); });
    if (order == Order::kDescending) std::ranges::reverse(ports);
  }
  rank_by_hosts();
  if (!all_reached()) {
    rank_by_root();
    CHECK(all_reached());
  }
}

// Switches far from hosts are high: in a Clos network this allows every shortest path.
void Routes::rank_by_hosts() {
  const auto hops = hops_from(topology_, ports_of_, port_node_, topology_.hosts());
  rank_.resize(hops.size());
  for (size_t i = 0; i < hops.size(); ++i) rank_[i] = (uint64_t{hops[i]} << 32) + i;
}

// Switches near a root are high: this connects everything in every graph. Switches that only hosts
// connect have roots of their own.
void Routes::rank_by_root() {
  std::vector<uint32_t> by_height;
  for (uint32_t i = 0; i < rank_.size(); ++i) {
    if (topology_.nodes()[i].is_switch) by_height.push_back(i);
  }
  std::ranges::sort(by_height, std::greater{}, [this](uint32_t node) { return rank_[node]; });
  for (size_t i = 0; i < rank_.size(); ++i) rank_[i] = i;
  for (const uint32_t root : by_height) {
    if (rank_[root] != root) continue;  // reached from another
    const auto hops = hops_from(topology_, ports_of_, port_node_, {root});
    for (size_t i = 0; i < hops.size(); ++i) {
      if (hops[i] == UINT32_MAX || !topology_.nodes()[i].is_switch) continue;
      rank_[i] = (uint64_t{UINT32_MAX - hops[i]} << 32) + i;
    }
  }
  for (Distances& d : distances_) d = {};
}

bool Routes::all_reached() {
  for (const uint32_t to : topology_.hosts()) {
    const Distances& d = towards(to);
    for (const uint32_t from : topology_.hosts()) {
      if (from != to && d.climbing[from] == kFar) return false;
    }
    distances_[to] = {};  // there may be many; flows bring back those they need
  }
  return true;
}

const Routes::Distances& Routes::towards(uint32_t destination) {
  Distances& d = distances_[destination];
  if (!d.climbing.empty()) return d;
  d.climbing.assign(topology_.nodes().size(), kFar);
  d.descending = d.climbing;
  d.climbing[destination] = d.descending[destination] = 0;
  // Backwards from the destination: who gets to `node` in one step, and in which state?
  std::vector<std::pair<uint32_t, bool>> queue = {{destination, false}};
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto [node, climbing] = queue[i];
    const auto next = static_cast<uint16_t>((climbing ? d.climbing : d.descending)[node] + 1);
    for (const uint32_t port : ports_of_[node]) {
      const uint32_t before = peer_of(port);
      const auto reach = [&](std::vector<uint16_t>& distance, bool state) {
        if (distance[before] != kFar) return;
        distance[before] = next;
        if (topology_.nodes()[before].is_switch) queue.emplace_back(before, state);
      };
      if (climbing) {
        if (climbs(before, node)) reach(d.climbing, true);
      } else if (!climbs(before, node)) {
        reach(d.descending, false);
        reach(d.climbing, true);
      } else if (node == destination) {
        reach(d.climbing, true);
      }
    }
  }
  return d;
}

void Routes::append_path(const FiveTuple& tuple, std::vector<uint32_t>& ports) {
  const Distances& d = towards(tuple.destination);
  uint32_t node = tuple.source;
  bool climbing = true;
  std::vector<uint32_t> choices;
  while (node != tuple.destination) {
    const uint16_t left = (climbing ? d.climbing : d.descending)[node];
    CHECK(left != kFar);
    choices.clear();
    for (const uint32_t port : ports_of_[node]) {
      const uint32_t peer = peer_of(port);
      if (peer != tuple.destination && !topology_.nodes()[peer].is_switch) continue;
      const bool up = climbs(node, peer);
      if (up && !climbing) continue;
      if ((up ? d.climbing : d.descending)[peer] + 1 == left) choices.push_back(port);
    }
    CHECK(!choices.empty());
    const size_t chosen = choices.size() == 1 ? 0 : ecmp_hash(tuple, seed_ + node) % choices.size();
    ports.push_back(choices[chosen]);
    climbing = climbing && climbs(node, peer_of(choices[chosen]));
    node = peer_of(choices[chosen]);
  }
}

}  // namespace cairn::net
