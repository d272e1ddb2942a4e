// SPDX-License-Identifier: Apache-2.0
// What goes into a network model, and what comes out.
#pragma once

#include <cstdint>

namespace cairn::net {

// Model time. Zero is when the network was switched on.
using Picos = int64_t;

inline constexpr Picos kNever = INT64_MAX;
inline constexpr Picos kNanosecond = 1'000;
inline constexpr Picos kMicrosecond = 1'000'000;
inline constexpr Picos kMillisecond = 1'000'000'000;
inline constexpr Picos kSecond = 1'000'000'000'000;

// Priority 0 carries acknowledgements and PAUSE frames; flows use the others.
inline constexpr uint32_t kPriorities = 8;
inline constexpr uint8_t kDataPriority = 3;
// What the hash that chooses among equal paths sees, unless a flow says otherwise.
inline constexpr uint16_t kDestinationPort = 100;

// Bytes from one host to another. Hosts are counted from 0, as Topology::hosts() counts them.
struct Flow {
  uint64_t tag = 0;  // the caller's; comes back with FlowDone
  uint32_t source = 0;
  uint32_t destination = 0;
  uint64_t bytes = 0;
  Picos start = 0;
  uint8_t priority = kDataPriority;
  uint16_t destination_port = kDestinationPort;
};

struct FlowDone {
  uint64_t tag = 0;
  Picos received = 0;  // the last byte is at the receiver
  Picos finished = 0;  // the last acknowledgement is at the sender
};

// A PAUSE or RESUME frame at the node that it stops or lets go on.
struct PfcFrame {
  Picos time = 0;
  uint32_t node = 0;
  uint32_t from = 0;  // the neighbour that sent it
  uint8_t priority = 0;
  bool pause = false;
  friend bool operator==(const PfcFrame&, const PfcFrame&) = default;
};

class FlowSink {
 public:
  virtual ~FlowSink() = default;
  // Called in order of `finished`, which is the network's now(). May start further flows at once.
  virtual void flow_done(const FlowDone& done) = 0;
  // The last byte is at the receiver now; told of packets only, not in fluid mode.
  virtual void flow_received(uint64_t /*tag*/) {}
  // It is received now; of packets only.
  virtual void pfc_received(const PfcFrame& /*frame*/) {}
};

}  // namespace cairn::net
