// SPDX-License-Identifier: Apache-2.0
// The packet engine for flows with a window.
#include <algorithm>

#include "model/net/packet_network.h"

namespace cairn::net {

namespace {

constexpr uint32_t kDuplicatesForLoss = 3;

}  // namespace

bool PacketNetwork::window_allows(const FlowState& f) const {
  const TcpState& tcp = tcps_[f.tcp];
  if (tcp.repair) return true;
  if (f.sent >= f.bytes) return false;
  // Each duplicate acknowledgement tells of a packet that is no longer on the way.
  const uint64_t gone = uint64_t{tcp.duplicates} * parameters_.payload_bytes;
  const uint64_t on_the_way = f.sent - f.acked;
  const uint64_t counted = on_the_way > gone ? on_the_way - gone : 0;
  return counted + std::min<uint64_t>(parameters_.payload_bytes, f.bytes - f.sent) <=
         tcp.window.bytes();
}

void PacketNetwork::receive_segment(uint32_t index) {
  const Event event = events_[index];
  FlowState& f = flows_[event.flow];
  TcpState& tcp = tcps_[f.tcp];
  const uint32_t payload = event.bytes - parameters_.header_bytes;
  const uint64_t before = f.expected;
  const bool had_gap = !tcp.islands.empty();
  f.expected = tcp.arrived(before, event.offset, event.offset + payload);
  counters_.payload_bytes_delivered += f.expected - before;
  if (f.expected == f.bytes && before != f.bytes) {
    f.received = now_;
    sink_->flow_received(f.tag);
  }
  ++tcp.unacknowledged;
  const bool mark_changed = event.marked != tcp.last_marked;
  tcp.last_marked = event.marked;
  const bool in_order = event.offset == before && !had_gap;
  if (in_order && !mark_changed && f.expected < f.bytes &&
      tcp.unacknowledged < parameters_.tcp.packets_per_ack) {
    if (tcp.unacknowledged == 1) tcp.ack_due = now_ + parameters_.tcp.delayed_ack;
    if (tcp.ack_timer) {
      free_event(index);
    } else {
      tcp.ack_timer = true;
      events_[index].kind = EventKind::kAckTimer;
      set_timer(index, tcp.ack_due);
    }
    return;
  }
  send_ack(index, event.repeated ? 0 : event.since);
}

// Turns a packet, or a timer, of the flow into its acknowledgement.
void PacketNetwork::send_ack(uint32_t index, Picos since) {
  Event& event = events_[index];
  const FlowState& f = flows_[event.flow];
  TcpState& tcp = tcps_[f.tcp];
  event.kind = EventKind::kAck;
  event.priority = f.priority;
  event.marked = tcp.last_marked;
  event.bytes = parameters_.ack_bytes;
  event.offset = f.expected;
  event.route = f.ack_route + 1;
  event.since = since;
  tcp.unacknowledged = 0;
  ++counters_.acks;
  transmit_control(hops_[f.ack_route], index);
}

void PacketNetwork::ack_timer(uint32_t index) {
  TcpState& tcp = tcps_[flows_[events_[index].flow].tcp];
  if (tcp.unacknowledged > 0 && now_ < tcp.ack_due) {
    set_timer(index, tcp.ack_due);
    return;
  }
  tcp.ack_timer = false;
  if (tcp.unacknowledged == 0) {
    free_event(index);
  } else {
    send_ack(index, 0);
  }
}

void PacketNetwork::receive_window_ack(uint32_t index) {
  const Event event = events_[index];
  const uint32_t flow = event.flow;
  FlowState& f = flows_[flow];
  TcpState& tcp = tcps_[f.tcp];
  if (event.since > 0) tcp.measured(now_ - event.since);
  const uint64_t newly = event.offset > f.acked ? event.offset - f.acked : 0;
  if (newly > 0) {
    f.acked = event.offset;
    f.sent = std::max(f.sent, f.acked);
    f.progress_at = now_;
    tcp.timeouts = 0;
    tcp.duplicates = 0;
    tcp.repair = false;
    if (f.acked >= f.bytes) {
      finish_flow(flow);
      free_event(index);
      return;
    }
    tcp.deadline = now_ + tcp.timeout(parameters_.tcp.timeout_min);
    if (tcp.recovering && f.acked < tcp.recovered_at) {
      tcp.repair = true;  // the next gap of the same loss
    } else {
      tcp.recovering = false;
      tcp.window.acknowledged({.now = now_,
                               .acked = f.acked,
                               .newly = newly,
                               .sent = f.sent,
                               .marked = event.marked,
                               .round_trip = tcp.round_trip},
                              parameters_);
    }
  } else if (f.sent > f.acked) {
    ++tcp.duplicates;
    if (tcp.duplicates == kDuplicatesForLoss && !tcp.recovering) {
      tcp.recovering = true;
      tcp.repair = true;
      tcp.recovered_at = f.sent;
      tcp.window.lost(parameters_);
    }
  }
  free_event(index);
  Nic& nic = nics_[f.nic];
  offer(nic, flow);
  if (nic.ready(f.slot)) kick(nic);
}

void PacketNetwork::window_timeout(uint32_t flow) {
  FlowState& f = flows_[flow];
  TcpState& tcp = tcps_[f.tcp];
  if (now_ < tcp.deadline || f.sent == f.acked) return;
  tcp.window.timed_out(f.sent - f.acked, parameters_);
  ++tcp.timeouts;
  tcp.recovering = false;
  tcp.duplicates = 0;
  tcp.repair = false;
  f.sent = f.acked;
  tcp.deadline = now_ + tcp.timeout(parameters_.tcp.timeout_min);
  Nic& nic = nics_[f.nic];
  offer(nic, flow);
  kick(nic);
}

}  // namespace cairn::net
