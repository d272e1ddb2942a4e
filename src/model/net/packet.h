// SPDX-License-Identifier: Apache-2.0
// What the packet engine keeps in its pools.
#pragma once

#include <cstdint>

#include "model/flash/pool.h"
#include "model/net/dcqcn.h"
#include "model/net/flow.h"

namespace cairn::net {

using flash::Fifo;

enum class EventKind : uint8_t {
  kData,  // the frame is at the far end of `port`
  kAck,
  kNack,
  kPause,  // for `priority`
  kResume,
  kPortFree,   // `port` has sent its frame and may have another
  kHostWake,   // a flow of the host's `port` may send again
  kFlowStart,  // of `flow`
  // From here on timers that mean nothing once the flow is done.
  kTimeout,   // of `flow`: no progress?
  kAckTimer,  // of `flow`: an acknowledgement that was held back
};

// A frame on its way, or a timer: an event either way. One cache line.
struct alignas(64) Event {
  Picos time = 0;
  uint64_t order = 0;
  uint32_t next = 0;
  EventKind kind = EventKind::kData;
  uint8_t priority = 0;
  bool marked = false;    // by a switch; on an acknowledgement, the notification
  bool repeated = false;  // data; a flow's start that was put behind others of its moment
  uint32_t port = 0;      // that it left through
  uint32_t enter = 0;     // the switch's own port that it came in by
  uint32_t flow = 0;
  uint32_t bytes = 0;   // on the wire
  uint64_t offset = 0;  // of the first payload byte; of an acknowledgement, the next expected
  uint32_t route = 0;   // index of the port it leaves the next node through
  Picos since = 0;      // when the host sent the data; when a wake-up was asked for
};
static_assert(sizeof(Event) == 64);

// One direction of a link, seen from where it begins.
struct alignas(64) Port {
  uint32_t node = 0;
  uint32_t peer = 0;
  bool at_switch = false;
  bool to_switch = false;
  uint8_t paused = 0;   // a bit per priority
  uint8_t backlog = 0;  // priorities with frames waiting; only at switches
  uint8_t last_priority = 0;
  bool free_pending = false;
  uint32_t free_event = 0;
  // The frame being sent, or the last, ends here; at the same time with a smaller order it has not.
  Picos free_at = 0;
  uint64_t free_order = 0;
  Picos began_at = 0;  // sending it
  Picos delay = 0;
  Picos frame_time = 0;  // of a full data frame, an acknowledgement
  Picos ack_time = 0;
  uint64_t bits_per_s = 0;

  // Of the switch it belongs to.
  uint32_t kmin_bytes = 0;  // nothing is marked below; without marks there is no above
  uint32_t kmax_bytes = 0;
  double pmax = 0;
  uint32_t headroom_bytes = 0;
  uint32_t threshold_shift = 0;
  uint32_t shared = 0;  // index of the switch's buffer

  uint32_t queue_bytes_max = 0;
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t data_bytes = 0;
};

// A priority of a port: what waits to leave through it, and what came in by it and has not left.
struct Lane {
  Fifo queue;
  uint32_t egress_bytes = 0;
  uint32_t ingress_bytes = 0;
  uint32_t headroom_used = 0;
  bool pause_sent = false;
};

struct SharedBuffer {
  uint32_t for_sharing = 0;  // what headroom and reserves leave
  uint32_t used = 0;
};

// Both ends of a flow.
struct FlowState {
  uint64_t tag = 0;
  uint64_t bytes = 0;
  uint32_t next = 0;
  uint32_t source = 0;  // node numbers
  uint32_t destination = 0;
  uint32_t data_route = 0;
  uint32_t ack_route = 0;
  uint32_t nic = 0;
  uint32_t slot = 0;
  uint32_t tcp = 0;
  uint32_t on_the_way = 0;  // events that name it
  uint16_t destination_port = 0;
  uint8_t priority = 0;
  bool done = false;
  bool in_turn = false;  // has a slot at its NIC
  bool waiting = false;  // in the NIC's heap of flows that may not send yet
  bool timer_set = false;

  uint64_t sent = 0;  // the next byte to send
  uint64_t sent_max = 0;
  uint64_t acked = 0;
  Picos next_send = 0;
  Picos progress_at = 0;
  Dcqcn dcqcn;

  uint64_t expected = 0;
  uint64_t last_nack = 0;
  Picos nack_again_at = 0;
  Picos notify_again_at = 0;
  Picos received = 0;
};

}  // namespace cairn::net
