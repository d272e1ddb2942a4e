// SPDX-License-Identifier: Apache-2.0
// Every packet on every hop.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/net/engine.h"
#include "model/net/event_wheel.h"
#include "model/net/mark_streams.h"
#include "model/net/nic.h"
#include "model/net/packet.h"
#include "model/net/parameters.h"
#include "model/net/reference_nic.h"
#include "model/net/routes.h"
#include "model/net/tcp.h"
#include "model/net/topology.h"

namespace cairn::net {

// A frame costs one event per hop: its arrival. A port that becomes free is an event only when
// something waits there. Frames of priority 0 never wait for anything but those before them, so
// when they leave is known when they come.
class PacketNetwork final : public Engine {
 public:
  PacketNetwork(const Topology& topology, const Parameters& parameters);

  void start(const Flow& flow) override;
  Picos next_event() const override { return wheel_.next_time(); }
  void advance(Picos until, FlowSink& sink) override;
  Picos now() const override { return now_; }
  const Counters& counters() const override;
  uint64_t unfinished() const override {
    return counters_.flows_started - counters_.flows_finished;
  }

 private:
  void build_ports();
  void build_buffers();
  bool is_stale(const Event& event) const {
    return event.kind >= EventKind::kTimeout && flows_[event.flow].done;
  }
  void fetch_ahead() const;
  void handle(uint32_t index);
  void arrive(uint32_t index);

  // Links.
  uint32_t new_event(EventKind kind, uint32_t flow);
  void free_event(uint32_t index);
  void set_timer(uint32_t index, Picos at);
  bool busy(const Port& p) const {
    return now_ < p.free_at || (now_ == p.free_at && order_now_ < p.free_order);
  }
  Picos time_on(const Port& p, uint32_t bytes) const;
  void transmit(uint32_t port, uint32_t index, Picos at);
  void transmit_now(uint32_t port, uint32_t index) { transmit(port, index, now_); }
  // For frames of priority 0: after what is being sent.
  void transmit_control(uint32_t port, uint32_t index);
  // Sends the first frame of priority 0 that waits at a free port. False: none does.
  bool send_waiting_control(uint32_t port);
  // Makes sure that the port asks for the next frame when it is free.
  void serve_when_free(uint32_t port);
  void serve(uint32_t port);
  void pause_or_resume(const Event& event);

  // Switches.
  void forward(uint32_t index);
  bool admit(const Port& out, const Port& in, Lane& entered, const Lane& leaving, uint32_t bytes);
  uint32_t threshold(const Port& in) const {
    const SharedBuffer& shared = shared_[in.shared];
    return (shared.for_sharing - shared.used) >> in.threshold_shift;
  }
  uint32_t shared_use(const Lane& lane) const {
    const uint32_t reserve = parameters_.pfc.reserve_bytes;
    return lane.ingress_bytes > reserve ? lane.ingress_bytes - reserve : 0;
  }
  void send_pfc(uint32_t port, EventKind kind, uint8_t priority);
  void leave_switch(uint32_t port, uint32_t index);
  bool should_mark(const Port& out, uint32_t waiting, const Event& event);
  void switch_send(uint32_t port);
  void drop(uint32_t port, uint32_t index);

  // Hosts.
  void begin_flow(uint32_t flow);
  uint32_t path(const FiveTuple& tuple);
  void host_send(Nic& nic);
  void send_packet(Nic& nic, uint32_t flow);
  void offer(Nic& nic, uint32_t flow);
  void kick(Nic& nic);
  void wake(Nic& nic, Picos at);
  // The reference goes on repeating what a flow went back to, even when it turns out to be done.
  bool may_send(const FlowState& f) const {
    if (f.done && !parameters_.hpcc) return false;
    return parameters_.windowed() ? window_allows(f) : f.sent < f.bytes;
  }
  void leave_turn(uint32_t flow);
  void receive_data(uint32_t index);
  void receive_ack(uint32_t index);
  void finish_flow(uint32_t flow);
  void release_flow(uint32_t flow);
  void arm_timeout(uint32_t flow);
  void timeout(uint32_t flow);

  // Hosts as the reference has them.
  bool like_reference() const { return parameters_.hpcc && !parameters_.windowed(); }
  uint16_t source_port_of(const FlowState& f);
  void reference_send(uint32_t port);

  // Flows with a window.
  bool window_allows(const FlowState& f) const;
  void receive_segment(uint32_t index);
  void send_ack(uint32_t index, Picos since);
  void ack_timer(uint32_t index);
  void receive_window_ack(uint32_t index);
  void window_timeout(uint32_t flow);

  // Lanes of one priority lie together: most networks use few.
  Lane& lane(uint32_t port, uint8_t priority) { return lanes_[priority * ports_.size() + port]; }

  const Topology topology_;
  const Parameters parameters_;
  Routes routes_;
  Picos now_ = 0;
  Picos since_ = 0;  // when the event that happens now was scheduled; only for hosts' events
  uint64_t order_now_ = 0;
  uint64_t order_ = 1;
  FlowSink* sink_ = nullptr;

  Pool<Event> events_;
  EventWheel<Event> wheel_;
  std::vector<Port> ports_;
  std::vector<Lane> lanes_;
  std::vector<SharedBuffer> shared_;
  std::vector<Nic> nics_;  // one per port of a host
  std::vector<ReferenceNic> reference_nics_;
  std::vector<uint32_t> nic_of_port_;
  Pool<FlowState> flows_;
  Pool<TcpState> tcps_;         // only with a window
  std::vector<uint32_t> hops_;  // paths, one after the other
  std::map<std::vector<uint32_t>, uint32_t> path_at_;
  std::vector<uint16_t> next_source_port_;                                      // by node
  std::map<std::pair<uint32_t, uint32_t>, uint16_t> next_source_port_of_pair_;  // as the reference
  std::optional<MarkStreams> streams_;  // only as the reference draws
  mutable Counters counters_;
};

}  // namespace cairn::net
