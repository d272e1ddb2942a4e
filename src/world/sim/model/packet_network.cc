// SPDX-License-Identifier: Apache-2.0
#include "world/sim/model/packet_network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::sim {

namespace {

constexpr Duration kInsideANode = 4_us;
constexpr uint64_t kSmallMessage = 64;

Time up_to_nanos(net::Picos time) {
  return {time / net::kNanosecond + (time % net::kNanosecond != 0 ? 1 : 0)};
}

// When a small message has crossed a network on which nothing else is.
class Crossing final : public net::FlowSink {
 public:
  void flow_done(const net::FlowDone& done) override { received = done.received; }
  net::Picos received = 0;
};

}  // namespace

PacketNetwork::PacketNetwork(net::Topology topology, const net::Parameters& parameters)
    : topology_(std::move(topology)), parameters_(parameters), network_(topology_, parameters) {
  CHECK(parameters.mode == net::Mode::kPacket, "streams need packets");
}

Time PacketNetwork::deliver(Time now, uint32_t from, uint32_t to, uint64_t /*bytes*/) {
  if (from == to) return now + kInsideANode;
  CHECK(std::max(from, to) < topology_.hosts().size(), "a node for which there is no host");
  const auto [place, is_new] = idle_.try_emplace({from, to});
  if (is_new) {
    net::Network idle(topology_, parameters_);
    Crossing crossing;
    idle.start({.source = from, .destination = to, .bytes = kSmallMessage});
    idle.advance(net::kNever, crossing);
    place->second = Duration{up_to_nanos(crossing.received).ns};
  }
  return now + place->second;
}

std::optional<Time> PacketNetwork::send(Time now, uint32_t from, uint32_t to, uint64_t bytes,
                                        uint64_t tag) {
  if (from == to || bytes == 0) return deliver(now, from, to, bytes);
  CHECK(std::max(from, to) < topology_.hosts().size(), "a node for which there is no host");
  tags_.emplace(flows_, tag);
  network_.start({.tag = flows_++,
                  .source = from,
                  .destination = to,
                  .bytes = bytes,
                  .start = now.ns * net::kNanosecond});
  return {};
}

Time PacketNetwork::next_event() const {
  const net::Picos next = network_.next_event();
  return next == net::kNever ? Time::never() : up_to_nanos(next);
}

// A flow that repeats its last packets is received once.
void PacketNetwork::flow_received(uint64_t flow) {
  const auto found = tags_.find(flow);
  if (found == tags_.end()) return;
  received_.push_back(found->second);
  tags_.erase(found);
}

void PacketNetwork::advance(Time now, std::vector<uint64_t>& arrived) {
  network_.advance(now.ns * net::kNanosecond, *this);
  arrived.insert(arrived.end(), received_.begin(), received_.end());
  received_.clear();
}

std::function<std::unique_ptr<NetworkModel>(uint64_t seed)> packet_network(
    net::Topology topology, net::Parameters parameters) {
  return [topology = std::move(topology), parameters](uint64_t seed) {
    net::Parameters own = parameters;
    own.seed = seed;
    return std::make_unique<PacketNetwork>(topology, own);
  };
}

}  // namespace cairn::sim
