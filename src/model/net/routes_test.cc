// SPDX-License-Identifier: Apache-2.0
#include "model/net/routes.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/rng.h"

namespace cairn::net {
namespace {

std::vector<uint32_t> path(Routes& routes, const FiveTuple& tuple) {
  std::vector<uint32_t> ports;
  routes.append_path(tuple, ports);
  return ports;
}

TEST(Routes, HashIsTheSameEverywhere) {
  // MurmurHash3 of 0x0b000101, 0x0b000201 and the ports, by another implementation.
  EXPECT_EQ(ecmp_hash({1, 2, 10'000, 100}, 256), 0x153d7e3aU);
  EXPECT_EQ(ecmp_hash({300, 2, 10'000, 100}, 257), 0xf0c0b2b1U);
  EXPECT_NE(ecmp_hash({1, 2, 10'000, 100}, 256), ecmp_hash({1, 2, 10'000, 100}, 257));
  EXPECT_NE(ecmp_hash({1, 2, 10'000, 100}, 256), ecmp_hash({2, 1, 10'000, 100}, 256));
}

TEST(Routes, PathsLeadFromSourceToDestination) {
  const Topology t = clos({});
  Routes routes(t, 0);
  for (const uint32_t to : {1U, 17U, 64U, 255U}) {
    const auto ports = path(routes, {0, to, 10'000, 100});
    EXPECT_EQ(routes.node_of(ports.front()), 0U);
    EXPECT_EQ(routes.peer_of(ports.back()), to);
    for (size_t i = 1; i < ports.size(); ++i) {
      EXPECT_EQ(routes.node_of(ports[i]), routes.peer_of(ports[i - 1]));
    }
    EXPECT_EQ(ports.size(), to < 16 ? 2U : to < 64 ? 4U : 6U);
  }
}

TEST(Routes, OneFlowKeepsItsPath) {
  const Topology t = clos({});
  Routes one(t, 0);
  Routes two(t, 0);
  for (uint16_t port = 0; port < 100; ++port) {
    const FiveTuple tuple{3, 200, port, 100};
    EXPECT_EQ(path(one, tuple), path(two, tuple));
  }
}

TEST(Routes, FlowsSpreadOverEqualPaths) {
  const Topology t = clos({});
  Routes routes(t, 0);
  std::map<std::vector<uint32_t>, int> taken;
  constexpr int kFlows = 8000;
  for (int i = 0; i < kFlows; ++i) {
    ++taken[path(routes, {0, 255, static_cast<uint16_t>(10'000 + i), 100})];
  }
  // Two leaves, four spines, two leaves of the other pod.
  ASSERT_EQ(taken.size(), 16U);
  for (const auto& [ports, flows] : taken) {
    EXPECT_GT(flows, kFlows / 16 * 0.8);
    EXPECT_LT(flows, kFlows / 16 * 1.2);
  }
}

// Switches in a random connected graph, some with hosts.
Topology random_graph(Rng& rng) {
  Topology t;
  const auto switches = static_cast<uint32_t>(rng.between(2, 12));
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < switches; ++i) {
    ids.push_back(t.add_switch("s" + std::to_string(i)));
    if (i > 0) t.connect(ids[rng.below(i)], ids[i], {});
  }
  for (uint64_t i = rng.below(switches * 2); i > 0; --i) {
    const uint32_t a = ids[rng.below(switches)];
    const uint32_t b = ids[rng.below(switches)];
    if (a != b) t.connect(a, b, {});
  }
  for (uint32_t i = 0; i < 6; ++i) {
    t.connect(t.add_host("h" + std::to_string(i)), ids[rng.below(switches)], {});
  }
  return t;
}

// Ports that wait for each other's buffers: one follows the other on some path. Without a circle
// there is always one that can send.
bool has_circle(const std::map<uint32_t, std::vector<uint32_t>>& follows) {
  std::map<uint32_t, int> state;
  const std::function<bool(uint32_t)> visit = [&](uint32_t port) {
    if (state[port] != 0) return state[port] == 1;
    state[port] = 1;
    const auto next = follows.find(port);
    if (next != follows.end()) {
      for (const uint32_t other : next->second) {
        if (visit(other)) return true;
      }
    }
    state[port] = 2;
    return false;
  };
  for (const auto& [port, next] : follows) {
    if (visit(port)) return true;
  }
  return false;
}

TEST(Routes, SwitchesThatOnlyHostsConnectAreReached) {
  // Two rings without a way between them; each host has a link to both.
  Topology t;
  std::vector<uint32_t> rings[2];
  for (auto& ring : rings) {
    for (int i = 0; i < 5; ++i) ring.push_back(t.add_switch("s"));
    for (int i = 0; i < 5; ++i) t.connect(ring[i], ring[(i + 1) % 5], {});
  }
  for (int i = 0; i < 5; ++i) {
    const uint32_t host = t.add_host("h");
    t.connect(host, rings[0][i], {});
    t.connect(host, rings[1][(i * 2) % 5], {});
  }
  ASSERT_FALSE(t.problem());
  Routes routes(t, 0);
  for (const uint32_t from : t.hosts()) {
    for (const uint32_t to : t.hosts()) {
      if (from != to) EXPECT_EQ(routes.peer_of(path(routes, {from, to, 1, 2}).back()), to);
    }
  }
}

TEST(Routes, PortsNeverWaitInACircle) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    const Topology t = random_graph(rng);
    ASSERT_FALSE(t.problem());
    Routes routes(t, 0);
    std::map<uint32_t, std::vector<uint32_t>> follows;
    for (const uint32_t from : t.hosts()) {
      for (const uint32_t to : t.hosts()) {
        if (from == to) continue;
        for (uint16_t port = 0; port < 8; ++port) {
          const auto ports = path(routes, {from, to, port, 100});
          for (size_t i = 1; i < ports.size(); ++i) follows[ports[i - 1]].push_back(ports[i]);
        }
      }
    }
    EXPECT_FALSE(has_circle(follows)) << "round " << round;
  }
}

}  // namespace
}  // namespace cairn::net
