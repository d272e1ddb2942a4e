// SPDX-License-Identifier: Apache-2.0
#include "snis/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/check.h"
#include "model/flash/precondition.h"
#include "model/flash/workload.h"
#include "model/net/network.h"

namespace cairn::snis {

namespace {

class FlashDrive final : public Drive, flash::CompletionSink {
 public:
  FlashDrive(const flash::Parameters& parameters, double occupancy) : model_(parameters) {
    if (occupancy > 0) {
      const bool filled = flash::precondition(model_, flash::Synthetic{}, occupancy);
      CHECK(filled, "the system was checked");
    }
  }
  void submit(RequestNumber number, const trace::Record& request, Nanos at) override {
    constexpr uint64_t kSector = flash::kSectorBytes;
    const uint64_t first = request.offset / kSector;
    const uint64_t end = (request.offset + request.bytes + kSector - 1) / kSector;
    model_.submit({.op = request.write ? flash::Op::kWrite : flash::Op::kRead,
                   .lba = first,
                   .sectors = static_cast<uint32_t>(end - first),
                   .cookie = number},
                  at);
  }
  Nanos next_event() const override { return model_.next_event(); }
  void advance(Nanos until, DriveSink& sink) override {
    sink_ = &sink;
    model_.advance(until, *this);
  }

 private:
  void completed(const flash::Completion& completion) override {
    sink_->served(static_cast<RequestNumber>(completion.cookie), completion.done);
  }

  flash::FlashModel model_;
  DriveSink* sink_ = nullptr;
};

void add(std::vector<uint64_t>& into, const net::Series& from) {
  const std::vector<uint64_t>& bins = from.bins();
  if (into.size() < bins.size()) into.resize(bins.size());
  for (size_t i = 0; i < bins.size(); ++i) into[i] += bins[i];
}

class NetFabric final : public Fabric, net::FlowSink {
 public:
  NetFabric(const System& system, const std::vector<bool>& is_spine)
      : system_(system), is_spine_(is_spine), network_(system.topology, system.network) {}

  void start(RequestNumber number, const trace::Record& request, Picos at) override {
    uint32_t source = system_.target_hosts[request.target];
    uint32_t destination = system_.initiator_hosts[request.initiator];
    if (request.write) std::swap(source, destination);
    network_.start({.tag = number,
                    .source = source,
                    .destination = destination,
                    .bytes = request.bytes,
                    .start = at});
  }
  Picos next_event() const override { return network_.next_event(); }
  void advance(Picos until, FabricSink& sink) override {
    if (until < network_.now()) return;
    sink_ = &sink;
    network_.advance(until, *this);
  }

  NetworkFacts facts() const override {
    const net::Counters& k = network_.counters();
    NetworkFacts facts{.pauses_at_hosts = k.pauses_at_hosts,
                       .pauses_at_switches = k.pauses_at_switches,
                       .marks = k.marks,
                       .drops = k.drops,
                       .data_packets = k.data_packets,
                       .events = k.events,
                       .bin = k.bin};
    for (const net::PortCounters& port : k.ports) {
      if (is_spine_[port.node]) add(facts.spine_pauses, port.pauses);
      if (is_host_of(system_.target_hosts, port.node)) add(facts.read_bytes, port.sent_bytes);
      if (is_host_of(system_.initiator_hosts, port.node)) add(facts.write_bytes, port.sent_bytes);
    }
    return facts;
  }

 private:
  void flow_done(const net::FlowDone& done) override {
    sink_->carried(static_cast<RequestNumber>(done.tag), done.finished);
  }
  bool is_host_of(const std::vector<uint32_t>& hosts, uint32_t node) const {
    return std::ranges::any_of(
        hosts, [&](uint32_t host) { return system_.topology.hosts()[host] == node; });
  }

  const System& system_;
  const std::vector<bool>& is_spine_;
  net::Network network_;
  FabricSink* sink_ = nullptr;
};

// Links to the nearest host, by node.
std::vector<uint32_t> distances_from_hosts(const net::Topology& topology) {
  std::vector<std::vector<uint32_t>> neighbours(topology.nodes().size());
  for (const net::Link& link : topology.links()) {
    neighbours[link.a].push_back(link.b);
    neighbours[link.b].push_back(link.a);
  }
  std::vector<uint32_t> distances(neighbours.size(), UINT32_MAX);
  std::deque<uint32_t> reached(topology.hosts().begin(), topology.hosts().end());
  for (const uint32_t host : reached) distances[host] = 0;
  while (!reached.empty()) {
    const uint32_t node = reached.front();
    reached.pop_front();
    for (const uint32_t next : neighbours[node]) {
      if (distances[next] != UINT32_MAX) continue;
      distances[next] = distances[node] + 1;
      reached.push_back(next);
    }
  }
  return distances;
}

}  // namespace

std::optional<std::string> check(const System& system) {
  if (const auto problem = flash::check(system.drive)) {
    return fmt::format("the drive: {} {}", problem->member, problem->text);
  }
  if (const auto problem = system.topology.problem()) return "the network: " + *problem;
  if (const auto problem = net::check(system.network)) {
    return fmt::format("the network: {} {}", problem->member, problem->text);
  }
  if (system.target_hosts.empty() || system.initiator_hosts.empty()) {
    return "there must be a target and an initiator";
  }
  const size_t hosts = system.topology.hosts().size();
  for (const auto* group : {&system.target_hosts, &system.initiator_hosts}) {
    for (const uint32_t host : *group) {
      if (host >= hosts) return fmt::format("host {} is not in a network of {}", host, hosts);
    }
  }
  for (const uint32_t host : system.target_hosts) {
    if (std::ranges::find(system.initiator_hosts, host) != system.initiator_hosts.end()) {
      return fmt::format(
          "host {} cannot be of a target and of an initiator; the network needs "
          "more hosts",
          host);
    }
  }
  if (system.occupancy > 0) {
    flash::FlashModel probe(system.drive);
    if (!flash::precondition(probe, flash::Synthetic{}, system.occupancy)) {
      return fmt::format(
          "the drive has too few spare blocks to be written to {:.0f} percent "
          "before; ask for less",
          system.occupancy * 100);
    }
  }
  return std::nullopt;
}

void place_apart(System& system, uint32_t targets, uint32_t initiators) {
  const auto hosts = static_cast<uint32_t>(system.topology.hosts().size());
  CHECK(hosts >= 2, "two hosts to be apart");
  const uint32_t target_hosts = std::min(targets, hosts / 2);
  system.target_hosts.clear();
  system.initiator_hosts.clear();
  for (uint32_t i = 0; i < targets; ++i) system.target_hosts.push_back(i % target_hosts);
  // Beyond the first quarter, which in a network of pods is the targets' own, if there is room.
  const uint32_t first = std::max(target_hosts, hosts - initiators < hosts / 4 ? 0 : hosts / 4);
  const uint32_t room = hosts - first;
  const uint32_t stride = std::max(1U, room / std::max(1U, initiators));
  for (uint32_t i = 0; i < initiators; ++i) {
    system.initiator_hosts.push_back(first + i * stride % room);
  }
}

SystemModels::SystemModels(const System& system) : system_(system) {
  const std::vector<uint32_t> distances = distances_from_hosts(system.topology);
  uint32_t farthest = 1;
  for (const uint32_t distance : distances) {
    if (distance != UINT32_MAX) farthest = std::max(farthest, distance);
  }
  for (const uint32_t distance : distances) is_spine_.push_back(distance == farthest);
}

std::unique_ptr<Drive> SystemModels::make_drive(uint32_t) const {
  return std::make_unique<FlashDrive>(system_.drive, system_.occupancy);
}

std::unique_ptr<Fabric> SystemModels::make_fabric() const {
  return std::make_unique<NetFabric>(system_, is_spine_);
}

}  // namespace cairn::snis
