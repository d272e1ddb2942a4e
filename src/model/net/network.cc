// SPDX-License-Identifier: Apache-2.0
#include "model/net/network.h"

#include "model/net/fluid_network.h"
#include "model/net/packet_network.h"

namespace cairn::net {

namespace {

std::unique_ptr<Engine> make_engine(const Topology& topology, const Parameters& parameters) {
  if (parameters.mode == Mode::kFluid) {
    return std::make_unique<FluidNetwork>(topology, parameters);
  }
  return std::make_unique<PacketNetwork>(topology, parameters);
}

}  // namespace

Network::Network(const Topology& topology, const Parameters& parameters)
    : engine_(make_engine(topology, parameters)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

void Network::start(const Flow& flow) { engine_->start(flow); }
Picos Network::next_event() const { return engine_->next_event(); }
void Network::advance(Picos until, FlowSink& sink) { engine_->advance(until, sink); }
Picos Network::now() const { return engine_->now(); }
const Counters& Network::counters() const { return engine_->counters(); }
uint64_t Network::unfinished() const { return engine_->unfinished(); }

}  // namespace cairn::net
