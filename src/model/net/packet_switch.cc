// SPDX-License-Identifier: Apache-2.0
// The packet engine inside a switch: a shared buffer, PAUSE by what came in, marks by what waits.
#include <algorithm>

#include "base/rng.h"
#include "model/net/packet_network.h"

namespace cairn::net {

void PacketNetwork::forward(uint32_t index) {
  Event& event = events_[index];
  const uint32_t out = hops_[event.route++];
  if (event.kind != EventKind::kData && !parameters_.acks_wait_with_data) {
    transmit_control(out, index);
    return;
  }
  const uint32_t in = event.port ^ 1;
  const uint8_t priority = event.priority;
  Port& p = ports_[out];
  Lane& entered = lane(in, priority);
  Lane& leaving = lane(out, priority);
  if (!admit(p, ports_[in], entered, leaving, event.bytes)) {
    drop(out, index);
    return;
  }
  event.enter = in;
  leaving.egress_bytes += event.bytes;
  p.queue_bytes_max = std::max(p.queue_bytes_max, leaving.egress_bytes);
  if (counters_.bin > 0) {
    counters_.ports[out].queue_bytes.raise(now_, counters_.bin, leaving.egress_bytes);
  }
  if (parameters_.pfc.enabled && !entered.pause_sent &&
      (entered.headroom_used > 0 || shared_use(entered) >= threshold(ports_[in]))) {
    send_pfc(in, EventKind::kPause, priority);
    entered.pause_sent = true;
  }
  const bool free = !busy(p);
  const auto bit = static_cast<uint8_t>(1U << priority);
  if (free && p.backlog == 0 && (p.paused & bit) == 0) {
    p.last_priority = priority;
    leave_switch(out, index);
    return;
  }
  leaving.queue.push(events_, index);
  p.backlog |= bit;
  if (!free) {
    serve_when_free(out);
  } else {
    switch_send(out);
  }
}

// Bytes go to the reserve, then to the shared part, then to the headroom.
bool PacketNetwork::admit(const Port& out, const Port& in, Lane& entered, const Lane& leaving,
                          uint32_t bytes) {
  if (!parameters_.pfc.enabled) {
    SharedBuffer& shared = shared_[out.shared];
    if (shared.used + bytes > shared.for_sharing) return false;
    if (leaving.egress_bytes + uint64_t{bytes} > parameters_.queue_bytes_max) return false;
    shared.used += bytes;
    return true;
  }
  const uint32_t limit = threshold(in);
  if (bytes + entered.headroom_used > in.headroom_bytes && bytes + shared_use(entered) > limit) {
    return false;
  }
  const uint32_t reserve = parameters_.pfc.reserve_bytes;
  const uint32_t wanted = entered.ingress_bytes + bytes;
  if (wanted <= reserve) {
    entered.ingress_bytes = wanted;
  } else if (wanted - reserve > limit) {
    entered.headroom_used += bytes;
  } else {
    entered.ingress_bytes = wanted;
    shared_[in.shared].used += std::min(bytes, wanted - reserve);
  }
  return true;
}

void PacketNetwork::send_pfc(uint32_t port, EventKind kind, uint8_t priority) {
  const uint32_t index = new_event(kind, kNone);
  Event& event = events_[index];
  event.priority = priority;
  event.bytes = parameters_.pause_bytes;
  if (streams_) streams_->skip();  // the reference draws an identification for each
  transmit_control(port, index);
}

void PacketNetwork::leave_switch(uint32_t port, uint32_t index) {
  Port& p = ports_[port];
  const uint32_t bytes = events_[index].bytes;
  const uint8_t priority = events_[index].priority;
  Lane& leaving = lane(port, priority);
  leaving.egress_bytes -= bytes;
  if (parameters_.pfc.enabled) {
    const uint32_t in = events_[index].enter;
    Lane& entered = lane(in, priority);
    const uint32_t from_headroom = std::min(entered.headroom_used, bytes);
    const uint32_t from_shared = std::min(bytes - from_headroom, shared_use(entered));
    entered.headroom_used -= from_headroom;
    entered.ingress_bytes -= bytes - from_headroom;
    shared_[p.shared].used -= from_shared;
  } else {
    shared_[p.shared].used -= bytes;
  }
  if (leaving.egress_bytes > p.kmin_bytes && should_mark(p, leaving.egress_bytes, events_[index])) {
    if (events_[index].kind == EventKind::kData) events_[index].marked = true;
    ++counters_.marks;
    ++counters_.ports[port].marks;
  }
  if (parameters_.pfc.enabled) {
    const uint32_t in = events_[index].enter;
    Lane& entered = lane(in, priority);
    if (entered.pause_sent && entered.headroom_used == 0) {
      const uint32_t used = shared_use(entered);
      if (used == 0 || used + parameters_.pfc.resume_offset_bytes <= threshold(ports_[in])) {
        send_pfc(in, EventKind::kResume, priority);
        entered.pause_sent = false;
      }
    }
  }
  p.data_bytes += bytes;
  transmit_now(port, index);
}

bool PacketNetwork::should_mark(const Port& out, uint32_t waiting, const Event& event) {
  if (waiting > out.kmax_bytes) return true;
  ++counters_.mark_draws;
  const double probability =
      out.pmax * static_cast<double>(waiting - out.kmin_bytes) / (out.kmax_bytes - out.kmin_bytes);
  if (streams_) return streams_->next() < probability;
  // Keyed by flow, packet and hop: what happens elsewhere does not move the draw.
  const uint64_t key =
      mix64(parameters_.seed ^ mix64(flows_[event.flow].tag) ^
            mix64(event.offset * 64 + event.route % 64 + (event.repeated ? 1 : 0)));
  return static_cast<double>(key >> 11) * 0x1.0p-53 < probability;
}

// Priorities with something to send take turns.
void PacketNetwork::switch_send(uint32_t port) {
  Port& p = ports_[port];
  const uint32_t sendable = p.backlog & ~uint32_t{p.paused};
  if (sendable == 0) return;
  uint32_t priority = p.last_priority;
  do {
    priority = (priority + 1) % kPriorities;
  } while ((sendable >> priority & 1) == 0);
  p.last_priority = static_cast<uint8_t>(priority);
  Lane& leaving = lane(port, p.last_priority);
  const uint32_t index = leaving.queue.pop(events_);
  if (leaving.queue.empty()) p.backlog &= static_cast<uint8_t>(~(1U << priority));
  leave_switch(port, index);
  if (p.backlog != 0) serve_when_free(port);
}

void PacketNetwork::drop(uint32_t port, uint32_t index) {
  ++counters_.drops;
  ++counters_.ports[port].drops;
  free_event(index);
}

}  // namespace cairn::net
