// SPDX-License-Identifier: Apache-2.0
#include "model/net/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cairn::net {

namespace {

constexpr uint32_t kNodesMax = 1 << 14;
constexpr uint64_t kRateMax = 10'000'000'000'000;

// Every node that can be reached from host `from` without passing through another host.
std::vector<bool> reached(const Topology& t, const std::vector<std::vector<uint32_t>>& neighbours,
                          uint32_t from) {
  std::vector<bool> seen(t.nodes().size());
  std::vector<uint32_t> todo = {from};
  seen[from] = true;
  while (!todo.empty()) {
    const uint32_t node = todo.back();
    todo.pop_back();
    if (node != from && !t.nodes()[node].is_switch) continue;
    for (const uint32_t next : neighbours[node]) {
      if (seen[next]) continue;
      seen[next] = true;
      todo.push_back(next);
    }
  }
  return seen;
}

// "4x16x4": exactly as many numbers as asked for, each from 1 to the limit.
std::optional<std::vector<uint32_t>> numbers(std::string_view text, size_t wanted) {
  std::vector<uint32_t> found;
  for (;;) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number == 0 || number > kNodesMax) return std::nullopt;
    found.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != 'x') return std::nullopt;
    text.remove_prefix(1);
  }
  if (found.size() != wanted) return std::nullopt;
  return found;
}

}  // namespace

uint32_t Topology::add(Node node) {
  const auto index = static_cast<uint32_t>(nodes_.size());
  if (!node.is_switch) hosts_.push_back(index);
  nodes_.push_back(std::move(node));
  return index;
}

std::optional<std::string> Topology::problem() const {
  if (hosts_.size() < 2) return "a network needs at least two hosts";
  if (nodes_.size() > kNodesMax) return fmt::format("at most {} nodes are possible", kNodesMax);
  std::vector<std::vector<uint32_t>> neighbours(nodes_.size());
  for (const Link& link : links_) {
    if (link.a >= nodes_.size() || link.b >= nodes_.size()) return "a link ends at no node";
    const std::string name =
        fmt::format("the link between {} and {}", nodes_[link.a].name, nodes_[link.b].name);
    if (link.a == link.b) return fmt::format("{} is connected to itself", nodes_[link.a].name);
    if (link.bits_per_s == 0 || link.bits_per_s > kRateMax) {
      return fmt::format("{} needs a rate above 0 and up to 10 Tb/s", name);
    }
    if (link.delay < 0 || link.delay > kSecond) {
      return fmt::format("{} needs a delay from 0 to 1 s", name);
    }
    neighbours[link.a].push_back(link.b);
    neighbours[link.b].push_back(link.a);
  }
  // Where every host has one link, what one reaches the others reach as well.
  const bool single_links =
      std::ranges::all_of(hosts_, [&](uint32_t host) { return neighbours[host].size() == 1; });
  for (const uint32_t from : hosts_) {
    const std::vector<bool> seen = reached(*this, neighbours, from);
    for (const uint32_t to : hosts_) {
      if (!seen[to]) {
        return fmt::format("{} does not reach {}: connect them through switches", nodes_[from].name,
                           nodes_[to].name);
      }
    }
    if (single_links) break;
  }
  return std::nullopt;
}

Topology star(uint32_t hosts, LinkSpeed speed) {
  Topology t;
  const uint32_t middle = t.add_switch("switch");
  for (uint32_t i = 0; i < hosts; ++i) {
    t.connect(middle, t.add_host(fmt::format("host{}", i)), speed);
  }
  return t;
}

Topology leaf_spine(const LeafSpine& shape) {
  Topology t;
  for (uint32_t i = 0; i < shape.leaves * shape.hosts_per_leaf; ++i) {
    t.add_host(fmt::format("host{}", i));
  }
  std::vector<uint32_t> leaves;
  for (uint32_t i = 0; i < shape.leaves; ++i) {
    leaves.push_back(t.add_switch(fmt::format("leaf{}", i)));
    for (uint32_t h = 0; h < shape.hosts_per_leaf; ++h) {
      t.connect(t.hosts()[i * shape.hosts_per_leaf + h], leaves[i], shape.host_link);
    }
  }
  for (uint32_t i = 0; i < shape.spines; ++i) {
    const uint32_t spine = t.add_switch(fmt::format("spine{}", i));
    for (const uint32_t leaf : leaves) t.connect(leaf, spine, shape.up_link);
  }
  return t;
}

Topology clos(const Clos& shape) {
  Topology t;
  const uint32_t racks = shape.pods * shape.tors_per_pod;
  for (uint32_t i = 0; i < racks * shape.hosts_per_tor; ++i) t.add_host(fmt::format("host{}", i));
  std::vector<uint32_t> tors;
  for (uint32_t i = 0; i < racks; ++i) {
    tors.push_back(t.add_switch(fmt::format("tor{}", i)));
    for (uint32_t h = 0; h < shape.hosts_per_tor; ++h) {
      t.connect(t.hosts()[i * shape.hosts_per_tor + h], tors[i], shape.host_link);
    }
  }
  std::vector<uint32_t> leaves;
  for (uint32_t pod = 0; pod < shape.pods; ++pod) {
    for (uint32_t i = 0; i < shape.leaves_per_pod; ++i) {
      const uint32_t leaf = t.add_switch(fmt::format("leaf{}", leaves.size()));
      leaves.push_back(leaf);
      for (uint32_t rack = 0; rack < shape.tors_per_pod; ++rack) {
        t.connect(tors[pod * shape.tors_per_pod + rack], leaf, shape.up_link);
      }
    }
  }
  for (uint32_t i = 0; i < shape.spines; ++i) {
    const uint32_t spine = t.add_switch(fmt::format("spine{}", i));
    for (const uint32_t leaf : leaves) t.connect(leaf, spine, shape.up_link);
  }
  return t;
}

std::expected<Topology, std::string> named_topology(std::string_view name) {
  const std::string known =
      "there are star:HOSTS, leaf-spine:LEAVESxHOSTSxSPINES (hosts per leaf) and clos256";
  if (name == "clos256") return clos({});
  const size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? "" : name.substr(colon + 1);
  if (kind == "star") {
    const auto shape = numbers(rest, 1);
    if (shape && (*shape)[0] >= 2) return star((*shape)[0]);
    return std::unexpected("star needs a number of hosts from 2 on, as in star:10");
  }
  if (kind == "leaf-spine") {
    const auto shape = numbers(rest, 3);
    if (!shape) return std::unexpected("leaf-spine needs three numbers, as in leaf-spine:4x16x4");
    LeafSpine wanted;
    wanted.leaves = (*shape)[0];
    wanted.hosts_per_leaf = (*shape)[1];
    wanted.spines = (*shape)[2];
    const uint64_t nodes = uint64_t{wanted.leaves} * wanted.hosts_per_leaf;
    if (nodes < 2 || nodes + wanted.leaves + wanted.spines > kNodesMax) {
      return std::unexpected(fmt::format("leaf-spine needs from 2 hosts to {} nodes", kNodesMax));
    }
    return leaf_spine(wanted);
  }
  return std::unexpected(fmt::format("there is no topology \"{}\"; {}", name, known));
}

}  // namespace cairn::net
