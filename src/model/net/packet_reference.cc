// SPDX-License-Identifier: Apache-2.0
// The packet engine inside a host of the HPCC reference: who sends next, and when it looks again.
#include <algorithm>

#include "model/net/packet_network.h"

namespace cairn::net {

uint16_t PacketNetwork::source_port_of(const FlowState& f) {
  if (!parameters_.hpcc) return next_source_port_[f.source]++;
  constexpr uint16_t kFirst = 10'000;
  const auto pair = std::pair(f.source, f.destination);
  return next_source_port_of_pair_.try_emplace(pair, kFirst).first->second++;
}

// A host looks for something to send at the end of each frame, and when a flow, an acknowledgement,
// a RESUME or its wake-up comes.
void PacketNetwork::reference_send(uint32_t port) {
  const Port& p = ports_[port];
  if (busy(p)) return serve_when_free(port);
  ReferenceNic& nic = reference_nics_[nic_of_port_[port]];
  if (send_waiting_control(port)) {
    if (!nic.empty()) serve_when_free(port);
    return;
  }
  const uint32_t flow = nic.take_next(
      [&](uint32_t each) {
        const FlowState& f = flows_[each];
        return f.sent < f.bytes && (p.paused >> f.priority & 1) == 0 && f.next_send <= now_;
      },
      [&](uint32_t each) { return flows_[each].acked >= flows_[each].bytes; },
      [&](uint32_t each) {
        flows_[each].in_turn = false;
        release_flow(each);
      });
  if (flow != ReferenceNic::kNobody) {
    send_packet(nics_[nic_of_port_[port]], flow);
    return serve_when_free(port);
  }
  if (nic.wake_pending) return;
  Picos next = kNever;
  for (const uint32_t each : nic.flows()) {
    const FlowState& f = flows_[each];
    if (f.sent < f.bytes) next = std::min(next, f.next_send);
  }
  if (next == kNever || next <= now_) return;
  nic.wake_pending = true;
  const uint32_t index = new_event(EventKind::kHostWake, kNone);
  events_[index].port = port;
  events_[index].since = now_;
  set_timer(index, next);
}

}  // namespace cairn::net
