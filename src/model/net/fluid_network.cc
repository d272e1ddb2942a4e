// SPDX-License-Identifier: Apache-2.0
#include "model/net/fluid_network.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/net/frame_time.h"

namespace cairn::net {

namespace {

constexpr double kRest = 1e-3;  // bytes that are only rounding

std::vector<double> capacities(const Topology& topology) {
  std::vector<double> bytes_per_pico;
  for (const Link& link : topology.links()) {
    const double rate = static_cast<double>(link.bits_per_s) / 8 / static_cast<double>(kSecond);
    bytes_per_pico.push_back(rate);
    bytes_per_pico.push_back(rate);
  }
  return bytes_per_pico;
}

}  // namespace

FluidNetwork::FluidNetwork(const Topology& topology, const Parameters& parameters)
    : topology_(topology),
      parameters_(parameters),
      routes_(topology_, parameters.hpcc ? 0 : static_cast<uint32_t>(parameters.seed)),
      shares_(capacities(topology)),
      next_source_port_(topology.nodes().size(), 10'000) {
  acks_.resize(routes_.ports());
  counters_.bin = parameters.bin;
  counters_.ports.resize(routes_.ports());
  for (uint32_t i = 0; i < routes_.ports(); ++i) {
    counters_.ports[i].node = routes_.node_of(i);
    counters_.ports[i].peer = routes_.peer_of(i);
  }
}

void FluidNetwork::start(const Flow& flow) {
  CHECK(flow.start >= now_);
  CHECK(flow.source < topology_.hosts().size());
  CHECK(flow.destination < topology_.hosts().size());
  CHECK(flow.source != flow.destination);
  CHECK(flow.bytes > 0);
  const uint32_t index = flows_.take();
  flows_[index].flow = flow;
  ++counters_.flows_started;
  arrivals_.push({flow.start, order_++}, index);
}

Picos FluidNetwork::next_event() const {
  return std::min({arrivals_.next().time, completions_.next().time, departure_});
}

void FluidNetwork::advance(Picos until, FlowSink& sink) {
  CHECK(until >= now_);
  for (;;) {
    const Picos time = next_event();
    if (time > until || time == kNever) break;
    ++counters_.events;
    run_until(time);
    if (departure_ <= now_) {
      for (size_t i = active_.size(); i-- > 0;) {
        if (flows_[active_[i]].left <= kRest) leave(i);
      }
      share();
    } else if (arrivals_.next().time <= now_) {
      while (arrivals_.next().time <= now_) begin(arrivals_.pop());
      share();
    } else {
      const uint32_t index = completions_.pop();
      const FlowDone done = flows_[index].done;
      flows_.give_back(index);
      ++counters_.flows_finished;
      sink.flow_done(done);
    }
  }
  if (until != kNever) run_until(until);
}

void FluidNetwork::begin(uint32_t index) {
  FluidFlow& f = flows_[index];
  const uint32_t source = topology_.hosts()[f.flow.source];
  const uint32_t destination = topology_.hosts()[f.flow.destination];
  const uint16_t source_port = next_source_port_[source]++;
  f.path.clear();
  f.back.clear();
  routes_.append_path({source, destination, source_port, f.flow.destination_port}, f.path);
  routes_.append_path({destination, source, f.flow.destination_port, source_port}, f.back);
  const uint64_t packets = (f.flow.bytes - 1) / parameters_.payload_bytes + 1;
  const uint64_t last = f.flow.bytes - (packets - 1) * parameters_.payload_bytes;
  f.left = static_cast<double>(f.flow.bytes + packets * parameters_.header_bytes);
  for (const uint32_t hop : f.path) {
    counters_.ports[hop].packets += packets;
    counters_.ports[hop].bytes += static_cast<uint64_t>(f.left);
    counters_.ports[hop].data_bytes += static_cast<uint64_t>(f.left);
  }
  f.received_after = way_of_last(f.path, last, packets > 1);
  f.finished_after = f.received_after;
  for (const uint32_t hop : f.back) {
    const Link& link = topology_.links()[hop / 2];
    f.finished_after += link.delay + frame_time(parameters_.ack_bytes, link.bits_per_s);
  }
  counters_.data_packets += packets;
  counters_.link_packets += packets * f.path.size();
  counters_.payload_bytes_sent += f.flow.bytes;
  active_.push_back(index);
  rates_.push_back(0);
}

// From when the last frame has left the sender to when it has arrived. It may be short, and then
// has to wait on the way for the full one before it.
Picos FluidNetwork::way_of_last(const std::vector<uint32_t>& path, uint64_t payload,
                                bool follows_another) const {
  const uint64_t bytes = payload + parameters_.header_bytes;
  const uint64_t rate = topology_.links()[path.front() / 2].bits_per_s;
  Picos before = -frame_time(bytes, rate);
  Picos last = 0;
  Picos delay = 0;
  for (size_t hop = 0; hop < path.size(); ++hop) {
    const Link& link = topology_.links()[path[hop] / 2];
    delay += link.delay;
    if (hop == 0) continue;
    before += frame_time(parameters_.frame_bytes_max(), link.bits_per_s);
    last = (follows_another ? std::max(last, before) : last) + frame_time(bytes, link.bits_per_s);
  }
  return delay + last;
}

void FluidNetwork::leave(size_t place) {
  const uint32_t index = active_[place];
  FluidFlow& f = flows_[index];
  f.done = {f.flow.tag, now_ + f.received_after, now_ + f.finished_after};
  counters_.payload_bytes_delivered += f.flow.bytes;
  completions_.push({f.done.finished, order_++}, index);
  active_.erase(active_.begin() + static_cast<ptrdiff_t>(place));
  rates_.erase(rates_.begin() + static_cast<ptrdiff_t>(place));
}

void FluidNetwork::run_until(Picos time) {
  for (size_t i = 0; i < active_.size(); ++i) {
    FluidFlow& f = flows_[active_[i]];
    f.left -= rates_[i] * static_cast<double>(time - now_);
    if (counters_.bin == 0) continue;
    Series& sent = counters_.ports[f.path.front()].sent_bytes;
    for (Picos from = now_; from < time;) {
      const Picos to = std::min(time, (from / counters_.bin + 1) * counters_.bin);
      sent.add(from, counters_.bin,
               static_cast<uint64_t>(rates_[i] * static_cast<double>(to - from)));
      from = to;
    }
  }
  now_ = time;
}

void FluidNetwork::share() {
  std::vector<std::span<const uint32_t>> paths;
  paths.reserve(active_.size());
  for (const uint32_t index : active_) paths.emplace_back(flows_[index].path);
  // Acknowledgements go first: what they need at these rates is not there for data.
  shares_.fill(paths, {}, rates_);
  const double part = static_cast<double>(parameters_.ack_bytes) /
                      static_cast<double>(parameters_.frame_bytes_max());
  std::ranges::fill(acks_, 0.0);
  for (size_t i = 0; i < active_.size(); ++i) {
    for (const uint32_t port : flows_[active_[i]].back) acks_[port] += part * rates_[i];
  }
  shares_.fill(paths, acks_, rates_);
  departure_ = kNever;
  for (size_t i = 0; i < active_.size(); ++i) {
    const double left = std::max(0.0, flows_[active_[i]].left - kRest / 2);
    departure_ = std::min(departure_, now_ + static_cast<Picos>(std::ceil(left / rates_[i])));
  }
}

}  // namespace cairn::net
