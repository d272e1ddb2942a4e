// SPDX-License-Identifier: Apache-2.0
// Hosts and switches, and the links between them.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/net/flow.h"

namespace cairn::net {

struct Node {
  std::string name;
  bool is_switch = false;
};

// Both directions have the rate and the delay.
struct Link {
  uint32_t a = 0;
  uint32_t b = 0;
  uint64_t bits_per_s = 0;
  Picos delay = 0;
};

struct LinkSpeed {
  uint64_t bits_per_s = 10'000'000'000;
  Picos delay = kMicrosecond;
};

// Any graph in which every host reaches every other without passing through a third.
class Topology {
 public:
  uint32_t add_host(std::string name) { return add({std::move(name), false}); }
  uint32_t add_switch(std::string name) { return add({std::move(name), true}); }
  void connect(uint32_t a, uint32_t b, LinkSpeed speed) {
    links_.push_back({a, b, speed.bits_per_s, speed.delay});
  }

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Link>& links() const { return links_; }
  // Node numbers of the hosts: host h of a flow is node hosts()[h].
  const std::vector<uint32_t>& hosts() const { return hosts_; }

  // Nothing when a network can be built of it, else a sentence about what is wrong.
  std::optional<std::string> problem() const;

 private:
  uint32_t add(Node node);

  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<uint32_t> hosts_;
};

// One switch and `hosts` hosts.
Topology star(uint32_t hosts, LinkSpeed speed = {});

struct LeafSpine {
  uint32_t leaves = 4;
  uint32_t hosts_per_leaf = 16;
  uint32_t spines = 4;
  LinkSpeed host_link;
  LinkSpeed up_link = {.bits_per_s = 40'000'000'000};
};
// Every leaf is connected to every spine.
Topology leaf_spine(const LeafSpine& shape);

struct Clos {
  uint32_t pods = 4;
  uint32_t tors_per_pod = 4;
  uint32_t hosts_per_tor = 16;
  uint32_t leaves_per_pod = 2;
  uint32_t spines = 4;
  LinkSpeed host_link;
  LinkSpeed up_link = {.bits_per_s = 40'000'000'000};
};
// Every top-of-rack switch is connected to the leaves of its pod, every leaf to every spine. The
// default is the 256-host network of the SNIS paper.
Topology clos(const Clos& shape);

// "star:10", "leaf-spine:4x16x4" (leaves, hosts per leaf, spines) or "clos256"; the error is a
// sentence that says what there is.
std::expected<Topology, std::string> named_topology(std::string_view name);

}  // namespace cairn::net
