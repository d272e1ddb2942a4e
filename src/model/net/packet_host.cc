// SPDX-License-Identifier: Apache-2.0
// The packet engine inside a host: flows take turns, receivers acknowledge, gaps go back.
#include <algorithm>

#include "base/check.h"
#include "model/net/frame_time.h"
#include "model/net/packet_network.h"

namespace cairn::net {

uint32_t PacketNetwork::path(const FiveTuple& tuple) {
  std::vector<uint32_t> ports;
  routes_.append_path(tuple, ports);
  const auto [found, fresh] = path_at_.try_emplace(ports, static_cast<uint32_t>(hops_.size()));
  if (fresh) hops_.insert(hops_.end(), ports.begin(), ports.end());
  return found->second;
}

void PacketNetwork::begin_flow(uint32_t flow) {
  FlowState& f = flows_[flow];
  const uint16_t source_port = source_port_of(f);
  f.data_route = path({f.source, f.destination, source_port, f.destination_port});
  f.ack_route = path({f.destination, f.source, f.destination_port, source_port});
  f.nic = nic_of_port_[hops_[f.data_route]];
  Nic& nic = nics_[f.nic];
  f.in_turn = true;
  if (like_reference()) {
    reference_nics_[f.nic].add(flow);
  } else {
    f.slot = nic.add(flow);
  }
  f.dcqcn = Dcqcn(ports_[nic.port].bits_per_s);
  if (parameters_.windowed()) {
    f.tcp = tcps_.take();
    tcps_[f.tcp].window = TcpWindow(parameters_);
  }
  f.next_send = now_;
  f.progress_at = now_;
  offer(nic, flow);
  kick(nic);
}

// Puts a flow that has something to send where the NIC will find it when it may.
void PacketNetwork::offer(Nic& nic, uint32_t flow) {
  FlowState& f = flows_[flow];
  if (like_reference() || !may_send(f) || f.waiting || nic.ready(f.slot)) return;
  if (f.next_send <= now_) {
    nic.set_ready(f.slot);
  } else {
    f.waiting = true;
    nic.wait(flow, f.next_send);
  }
}

void PacketNetwork::kick(Nic& nic) {
  if (like_reference()) {
    reference_send(nic.port);
  } else if (busy(ports_[nic.port])) {
    serve_when_free(nic.port);
  } else {
    host_send(nic);
  }
}

void PacketNetwork::wake(Nic& nic, Picos at) {
  if (at >= nic.wake_at) return;
  nic.wake_at = at;
  const uint32_t index = new_event(EventKind::kHostWake, kNone);
  events_[index].port = nic.port;
  events_[index].since = std::max(now_, ports_[nic.port].free_at);
  set_timer(index, at);
}

void PacketNetwork::host_send(Nic& nic) {
  while (nic.next_waiting() <= now_) {
    const uint32_t flow = nic.pop_waiting();
    FlowState& f = flows_[flow];
    f.waiting = false;
    if (may_send(f)) {
      nic.set_ready(f.slot);
    } else {
      release_flow(flow);
    }
  }
  Port& p = ports_[nic.port];
  uint32_t slot = nic.next_ready();
  while (slot != Nic::kNobody && !may_send(flows_[nic.flow_at(slot)])) {
    nic.clear_ready(slot);  // its window closed while it waited for its turn
    slot = nic.next_ready_after(slot);
  }
  if (p.paused != 0) {
    const uint32_t first = slot;
    while (slot != Nic::kNobody && (p.paused >> flows_[nic.flow_at(slot)].priority & 1) != 0) {
      slot = nic.next_ready_after(slot);
      if (slot == first) slot = Nic::kNobody;
    }
  }
  if (slot != Nic::kNobody) {
    nic.took(slot);
    nic.clear_ready(slot);
    send_packet(nic, nic.flow_at(slot));
    if (nic.next_ready() != Nic::kNobody) {
      serve_when_free(nic.port);
      return;
    }
  }
  if (nic.next_waiting() == kNever) return;
  // The reference sets its wake-up when the frame is out, which decides who goes first of a moment.
  if (nic.next_waiting() <= p.free_at || (parameters_.hpcc && busy(p))) {
    serve_when_free(nic.port);
  } else {
    wake(nic, nic.next_waiting());
  }
}

void PacketNetwork::send_packet(Nic& nic, uint32_t flow) {
  const uint32_t index = new_event(EventKind::kData, flow);
  FlowState& f = flows_[flow];
  Event& event = events_[index];
  const bool first = f.sent == f.acked;  // nothing else is on the way
  const bool repair = parameters_.windowed() && tcps_[f.tcp].repair;
  const uint64_t from = repair ? f.acked : f.sent;
  const uint64_t payload = std::min<uint64_t>(parameters_.payload_bytes, f.bytes - from);
  event.priority = f.priority;
  event.bytes = static_cast<uint32_t>(payload) + parameters_.header_bytes;
  event.offset = from;
  event.route = f.data_route + 1;
  event.repeated = from < f.sent_max;
  event.since = now_;
  if (repair) {
    tcps_[f.tcp].repair = false;
    f.sent = std::max(f.sent, from + payload);
  } else {
    f.sent += payload;
  }
  ++counters_.data_packets;
  if (event.repeated) ++counters_.repeated_packets;
  counters_.payload_bytes_sent += payload;
  f.sent_max = std::max(f.sent_max, f.sent);
  ports_[nic.port].data_bytes += event.bytes;
  const uint32_t bytes = event.bytes;
  transmit_now(nic.port, index);
  if (parameters_.windowed()) {
    TcpState& tcp = tcps_[f.tcp];
    if (first) tcp.deadline = now_ + tcp.timeout(parameters_.tcp.timeout_min);
    if (!f.timer_set) arm_timeout(flow);
    f.next_send = now_;
    offer(nic, flow);
    return;
  }
  const uint64_t rate = parameters_.control == Control::kDcqcn
                            ? f.dcqcn.rate(now_, since_, parameters_.dcqcn)
                            : ports_[nic.port].bits_per_s;
  f.next_send = now_ + (parameters_.hpcc ? frame_time_hpcc(bytes, rate) : frame_time(bytes, rate));
  if (first) f.progress_at = now_;
  if (parameters_.retransmit_timeout > 0 && !f.timer_set) arm_timeout(flow);
  offer(nic, flow);
  if (f.done && !may_send(f) && !like_reference()) leave_turn(flow);
}

void PacketNetwork::receive_data(uint32_t index) {
  if (parameters_.windowed()) {
    receive_segment(index);
    return;
  }
  Event& event = events_[index];
  FlowState& f = flows_[event.flow];
  const uint32_t payload = event.bytes - parameters_.header_bytes;
  EventKind answer = EventKind::kAck;
  if (event.offset == f.expected) {
    f.expected += payload;
    if (!f.done) counters_.payload_bytes_delivered += payload;
    if (f.expected == f.bytes) {
      f.received = now_;
      sink_->flow_received(f.tag);
    }
  } else if (event.offset > f.expected) {
    if (now_ < f.nack_again_at && f.last_nack == f.expected) {
      free_event(index);
      return;
    }
    f.nack_again_at = now_ + parameters_.nack_interval;
    f.last_nack = f.expected;
    answer = EventKind::kNack;
  } else if (parameters_.hpcc) {
    free_event(index);
    return;
  }
  bool notify = event.marked;
  if (notify && parameters_.dcqcn.notification_interval > 0) {
    notify = now_ >= f.notify_again_at;
    if (notify) f.notify_again_at = now_ + parameters_.dcqcn.notification_interval;
  }
  event.kind = answer;
  event.priority = f.priority;
  event.marked = notify;
  event.bytes = parameters_.ack_bytes;
  event.offset = f.expected;
  event.route = f.ack_route + 1;
  ++counters_.acks;
  transmit_control(hops_[f.ack_route], index);
}

void PacketNetwork::receive_ack(uint32_t index) {
  const Event event = events_[index];
  FlowState& f = flows_[event.flow];
  if (f.done) {
    free_event(index);
    return;
  }
  if (parameters_.windowed()) {
    receive_window_ack(index);
    return;
  }
  if (event.offset > f.acked) {
    f.acked = event.offset;
    f.progress_at = now_;
  }
  since_ = now_ - ports_[event.port].delay - ports_[event.port].ack_time;
  if (f.acked >= f.bytes) {
    finish_flow(event.flow);
    if (like_reference()) kick(nics_[f.nic]);
    free_event(index);
    return;
  }
  if (event.marked && parameters_.control == Control::kDcqcn) {
    f.dcqcn.notify(now_, since_, parameters_.dcqcn);
  }
  if (event.kind == EventKind::kNack) {
    f.sent = f.acked;
    offer(nics_[f.nic], event.flow);
  }
  if (event.kind == EventKind::kNack || like_reference()) kick(nics_[f.nic]);
  free_event(index);
}

void PacketNetwork::finish_flow(uint32_t flow) {
  FlowState& f = flows_[flow];
  f.done = true;
  if (!may_send(f) && !like_reference()) leave_turn(flow);
  const Picos received = f.received;
  if (parameters_.hpcc) {
    // The reference forgets the receiver: what is repeated now looks like a flow with a gap.
    f.expected = 0;
    f.last_nack = 0;
    f.nack_again_at = 0;
  }
  ++counters_.flows_finished;
  sink_->flow_done({f.tag, received, now_});
}

void PacketNetwork::leave_turn(uint32_t flow) {
  FlowState& f = flows_[flow];
  Nic& nic = nics_[f.nic];
  nic.remove(f.slot);
  f.in_turn = false;
  if (nic.sparse()) {
    nic.renumber([this](uint32_t moved, uint32_t slot) { flows_[moved].slot = slot; });
  }
}

void PacketNetwork::release_flow(uint32_t flow) {
  const FlowState& f = flows_[flow];
  if (f.done && f.on_the_way == 0 && !f.waiting && !f.in_turn) {
    if (parameters_.windowed()) tcps_.give_back(f.tcp);
    flows_.give_back(flow);
  }
}

void PacketNetwork::arm_timeout(uint32_t flow) {
  const uint32_t index = new_event(EventKind::kTimeout, flow);
  FlowState& f = flows_[flow];
  f.timer_set = true;
  const Picos timeout =
      parameters_.windowed() ? parameters_.tcp.timeout_min : parameters_.retransmit_timeout;
  const Picos deadline = parameters_.windowed() ? tcps_[f.tcp].deadline : f.progress_at + timeout;
  set_timer(index, deadline > now_ ? deadline : now_ + timeout);
}

void PacketNetwork::timeout(uint32_t flow) {
  FlowState& f = flows_[flow];
  f.timer_set = false;
  if (parameters_.windowed()) {
    window_timeout(flow);
  } else if (f.sent > f.acked && now_ - f.progress_at >= parameters_.retransmit_timeout) {
    f.sent = f.acked;
    f.progress_at = now_;
    Nic& nic = nics_[f.nic];
    offer(nic, flow);
    kick(nic);
  }
  if (!f.timer_set && f.acked < f.bytes) arm_timeout(flow);
}

}  // namespace cairn::net
