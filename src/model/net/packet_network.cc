// SPDX-License-Identifier: Apache-2.0
#include "model/net/packet_network.h"

#include <algorithm>

#include "base/check.h"
#include "model/net/frame_time.h"

namespace cairn::net {

namespace {

// Random streams that the reference opens before its first packet: some for each node, and a few.
constexpr uint64_t kStreamsPerNode = 6;
constexpr uint64_t kStreamsBefore = 2;

constexpr double kHeadroomMax = 1U << 30;  // more than any buffer has

}  // namespace

PacketNetwork::PacketNetwork(const Topology& topology, const Parameters& parameters)
    : topology_(topology),
      parameters_(parameters),
      routes_(topology_, parameters.hpcc ? 0 : static_cast<uint32_t>(parameters.seed),
              parameters.hpcc ? Routes::Order::kDescending : Routes::Order::kAscending),
      wheel_(events_),
      next_source_port_(topology.nodes().size(), 10'000) {
  if (parameters.hpcc) {
    streams_.emplace(kStreamsPerNode * topology.nodes().size() + kStreamsBefore);
  }
  build_ports();
  build_buffers();
  counters_.bin = parameters.bin;
}

void PacketNetwork::build_ports() {
  const auto& nodes = topology_.nodes();
  ports_.resize(routes_.ports());
  lanes_.resize(ports_.size() * kPriorities);
  counters_.ports.resize(ports_.size());
  nic_of_port_.assign(ports_.size(), kNone);
  for (uint32_t i = 0; i < ports_.size(); ++i) {
    const Link& link = topology_.links()[i / 2];
    Port& p = ports_[i];
    p.node = routes_.node_of(i);
    p.peer = routes_.peer_of(i);
    p.at_switch = nodes[p.node].is_switch;
    p.to_switch = nodes[p.peer].is_switch;
    p.bits_per_s = link.bits_per_s;
    p.delay = link.delay;
    p.frame_time = time_on(p, parameters_.frame_bytes_max());
    p.ack_time = time_on(p, parameters_.ack_bytes);
    p.free_event = events_.take();
    events_[p.free_event].kind = EventKind::kPortFree;
    events_[p.free_event].port = i;
    counters_.ports[i].node = p.node;
    counters_.ports[i].peer = p.peer;
    if (!p.at_switch) {
      nic_of_port_[i] = static_cast<uint32_t>(nics_.size());
      nics_.emplace_back().port = i;
      reference_nics_.emplace_back();
    }
  }
}

void PacketNetwork::build_buffers() {
  const auto& nodes = topology_.nodes();
  std::vector<uint32_t> shared_of(nodes.size(), kNone);
  const uint64_t nic_rate = ports_[nics_.front().port].bits_per_s;
  for (Port& p : ports_) {
    if (!p.at_switch) continue;
    uint32_t& shared = shared_of[p.node];
    if (shared == kNone) {
      shared = static_cast<uint32_t>(shared_.size());
      shared_.push_back({.for_sharing = static_cast<uint32_t>(parameters_.buffer_bytes)});
    }
    p.shared = shared;
    const EcnThreshold ecn = parameters_.ecn.at(p.bits_per_s);
    p.kmin_bytes = parameters_.ecn.enabled ? ecn.kmin_bytes : UINT32_MAX;
    p.kmax_bytes = ecn.kmax_bytes;
    p.pmax = ecn.pmax;
    p.threshold_shift = parameters_.pfc.threshold_shift;
    for (uint64_t rate = p.bits_per_s; rate > nic_rate && p.threshold_shift > 0; rate /= 2) {
      --p.threshold_shift;
    }
    if (!parameters_.pfc.enabled) continue;
    const double in_flight = static_cast<double>(p.bits_per_s) / 8 * static_cast<double>(p.delay) /
                             static_cast<double>(kSecond);
    const uint32_t extra = parameters_.pfc.headroom_extra_bytes.value_or(
        3 * parameters_.frame_bytes_max() + parameters_.pause_bytes + parameters_.ack_bytes);
    const double wanted = in_flight * parameters_.pfc.headroom_delays + extra;
    p.headroom_bytes = static_cast<uint32_t>(std::min(wanted, kHeadroomMax));
    SharedBuffer& buffer = shared_[shared];
    const uint32_t kept = p.headroom_bytes + parameters_.pfc.reserve_bytes;
    buffer.for_sharing -= std::min(buffer.for_sharing, kept);
  }
}

void PacketNetwork::start(const Flow& flow) {
  CHECK(flow.start >= now_);
  CHECK(flow.source < topology_.hosts().size());
  CHECK(flow.destination < topology_.hosts().size());
  CHECK(flow.source != flow.destination);
  CHECK(flow.bytes > 0);
  CHECK(flow.priority > 0 && flow.priority < kPriorities);
  const uint32_t index = flows_.take();
  FlowState& f = flows_[index];
  f.tag = flow.tag;
  f.bytes = flow.bytes;
  f.source = topology_.hosts()[flow.source];
  f.destination = topology_.hosts()[flow.destination];
  f.priority = flow.priority;
  f.destination_port = flow.destination_port;
  ++counters_.flows_started;
  set_timer(new_event(EventKind::kFlowStart, index), flow.start);
}

void PacketNetwork::advance(Picos until, FlowSink& sink) {
  CHECK(until >= now_);
  sink_ = &sink;
  for (;;) {
    const uint32_t index = wheel_.pop(until);
    if (index == kNone) break;
    if (is_stale(events_[index])) {
      free_event(index);  // a timer that nobody waits for is not something that happens
      continue;
    }
    now_ = events_[index].time;
    order_now_ = events_[index].order;
    ++counters_.events;
    fetch_ahead();
    handle(index);
  }
  // Everything of this moment has happened: nothing that is due now is still being sent.
  order_now_ = order_;
  if (until != kNever) now_ = until;
  sink_ = nullptr;
}

// What the next event will look at is on its way to the cache while this one is handled.
void PacketNetwork::fetch_ahead() const {
  const uint32_t next = wheel_.following();
  if (next == kNone) return;
  const Event& event = events_[next];
  const Port& p = ports_[event.port];
  __builtin_prefetch(&p.free_at);
  if (event.kind == EventKind::kPortFree && p.at_switch) {
    const Lane& waiting = lanes_[p.last_priority * ports_.size() + event.port];
    if (!waiting.queue.empty()) __builtin_prefetch(&events_[waiting.queue.head]);
  } else if (event.kind <= EventKind::kNack && p.to_switch) {
    __builtin_prefetch(&ports_[hops_[event.route]].free_at);
  }
}

void PacketNetwork::handle(uint32_t index) {
  const Event& event = events_[index];
  switch (event.kind) {
    case EventKind::kData:
    case EventKind::kAck:
    case EventKind::kNack:
    case EventKind::kPause:
    case EventKind::kResume:
      arrive(index);
      return;
    case EventKind::kPortFree: {
      const uint32_t port = event.port;
      ports_[port].free_pending = false;
      since_ = ports_[port].began_at;
      if (busy(ports_[port])) {
        serve_when_free(port);  // a frame of priority 0 came in between
      } else {
        serve(port);
      }
      return;
    }
    case EventKind::kHostWake: {
      const uint32_t nic_index = nic_of_port_[event.port];
      Nic& nic = nics_[nic_index];
      if (nic.wake_at == now_) nic.wake_at = kNever;
      reference_nics_[nic_index].wake_pending = false;
      since_ = event.since;
      free_event(index);
      kick(nic);
      return;
    }
    case EventKind::kFlowStart: {
      const uint32_t flow = event.flow;
      if (parameters_.hpcc && !event.repeated) {
        // The reference starts flows after all that was planned for this moment before.
        events_[index].repeated = true;
        set_timer(index, now_);
        return;
      }
      since_ = now_;
      begin_flow(flow);
      free_event(index);
      return;
    }
    case EventKind::kTimeout: {
      const uint32_t flow = event.flow;
      since_ = now_;
      timeout(flow);
      free_event(index);
      return;
    }
    case EventKind::kAckTimer:
      ack_timer(index);
      return;
  }
}

void PacketNetwork::arrive(uint32_t index) {
  const Event& event = events_[index];
  if (event.kind == EventKind::kPause || event.kind == EventKind::kResume) {
    pause_or_resume(event);
    free_event(index);
  } else if (ports_[event.port].to_switch) {
    forward(index);
  } else if (event.kind == EventKind::kData) {
    receive_data(index);
  } else {
    receive_ack(index);
  }
}

uint32_t PacketNetwork::new_event(EventKind kind, uint32_t flow) {
  const uint32_t index = events_.take();
  events_[index].kind = kind;
  events_[index].flow = flow;
  if (flow != kNone) ++flows_[flow].on_the_way;
  return index;
}

void PacketNetwork::free_event(uint32_t index) {
  const uint32_t flow = events_[index].flow;
  events_.give_back(index);
  if (flow == kNone) return;
  --flows_[flow].on_the_way;
  release_flow(flow);
}

void PacketNetwork::set_timer(uint32_t index, Picos at) {
  events_[index].time = at;
  events_[index].order = order_++;
  wheel_.push(index);
}

Picos PacketNetwork::time_on(const Port& p, uint32_t bytes) const {
  return parameters_.hpcc ? frame_time_hpcc(bytes, p.bits_per_s) : frame_time(bytes, p.bits_per_s);
}

void PacketNetwork::transmit(uint32_t port, uint32_t index, Picos at) {
  Port& p = ports_[port];
  Event& event = events_[index];
  const Picos time = event.bytes == parameters_.frame_bytes_max() ? p.frame_time
                     : event.bytes == parameters_.ack_bytes       ? p.ack_time
                                                                  : time_on(p, event.bytes);
  p.began_at = at;
  p.free_at = at + time;
  p.free_order = order_++;
  ++p.packets;
  p.bytes += event.bytes;
  event.port = port;
  event.time = p.free_at + p.delay;
  event.order = order_++;
  wheel_.push(index);
  if (counters_.bin > 0) counters_.ports[port].sent_bytes.add(at, counters_.bin, event.bytes);
}

// The reference decides who goes first of a moment by when a frame began to be sent. Nobody else
// needs an event for that.
void PacketNetwork::transmit_control(uint32_t port, uint32_t index) {
  const Port& p = ports_[port];
  if (!parameters_.hpcc) return transmit(port, index, busy(p) ? p.free_at : now_);
  lane(port, 0).queue.push(events_, index);
  if (busy(p)) {
    serve_when_free(port);
  } else {
    serve(port);
  }
}

bool PacketNetwork::send_waiting_control(uint32_t port) {
  Fifo& waiting = lane(port, 0).queue;
  if (waiting.empty()) return false;
  transmit_now(port, waiting.pop(events_));
  if (!waiting.empty() || ports_[port].backlog != 0) serve_when_free(port);
  return true;
}

void PacketNetwork::serve_when_free(uint32_t port) {
  Port& p = ports_[port];
  if (p.free_pending) return;
  p.free_pending = true;
  Event& event = events_[p.free_event];
  event.time = p.free_at;
  event.order = p.free_order;
  wheel_.push(p.free_event);
}

void PacketNetwork::serve(uint32_t port) {
  if (like_reference() && !ports_[port].at_switch) return reference_send(port);
  if (send_waiting_control(port)) return;
  if (ports_[port].at_switch) {
    switch_send(port);
  } else {
    host_send(nics_[nic_of_port_[port]]);
  }
}

void PacketNetwork::pause_or_resume(const Event& event) {
  const uint32_t port = event.port ^ 1;  // the other direction of the same link
  Port& p = ports_[port];
  PortCounters& count = counters_.ports[port];
  const auto bit = static_cast<uint8_t>(1U << event.priority);
  const bool pause = event.kind == EventKind::kPause;
  sink_->pfc_received({now_, p.node, p.peer, event.priority, pause});
  if (pause) {
    p.paused |= bit;
    ++count.pauses_received;
    count.pauses.add(now_, counters_.bin, 1);
    ++(p.at_switch ? counters_.pauses_at_switches : counters_.pauses_at_hosts);
    if (counters_.first_pause < 0) counters_.first_pause = now_;
    counters_.last_pause = now_;
    return;
  }
  p.paused &= static_cast<uint8_t>(~bit);
  ++count.resumes_received;
  ++counters_.resumes;
  if (!p.at_switch) {
    since_ = now_;
    kick(nics_[nic_of_port_[port]]);
  } else if (busy(p)) {
    if (p.backlog != 0) serve_when_free(port);
  } else {
    switch_send(port);
  }
}

const Counters& PacketNetwork::counters() const {
  counters_.link_packets = 0;
  for (size_t i = 0; i < ports_.size(); ++i) {
    counters_.ports[i].packets = ports_[i].packets;
    counters_.ports[i].bytes = ports_[i].bytes;
    counters_.ports[i].data_bytes = ports_[i].data_bytes;
    counters_.ports[i].queue_bytes_max = ports_[i].queue_bytes_max;
    counters_.link_packets += ports_[i].packets;
  }
  return counters_;
}

}  // namespace cairn::net
