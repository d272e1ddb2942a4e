// SPDX-License-Identifier: Apache-2.0
// Both ends of a TCP flow: what is missing, what is out of order, and how long to wait.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/net/tcp_window.h"

namespace cairn::net {

struct TcpState {
  uint32_t next = 0;

  // Sender. Loss is repaired as NewReno does (RFC 6582): one missing packet per round trip.
  TcpWindow window;
  uint32_t duplicates = 0;
  bool recovering = false;
  bool repair = false;        // send the packet at `acked` before anything else
  uint64_t recovered_at = 0;  // recovery ends when this is acknowledged
  Picos round_trip = 0;       // smoothed
  Picos round_trip_var = 0;
  uint32_t timeouts = 0;  // in a row
  Picos deadline = kNever;

  // Receiver.
  std::vector<std::pair<uint64_t, uint64_t>> islands;  // arrived beyond a gap, apart and in order
  uint32_t unacknowledged = 0;                         // packets that no acknowledgement tells of
  bool last_marked = false;
  bool ack_timer = false;  // under way
  Picos ack_due = 0;       // of the first packet that is not acknowledged

  void measured(Picos sample);
  // RFC 6298, with the datacentre's minimum; doubled for each timeout in a row.
  Picos timeout(Picos min) const;
  // Takes [from, to) in; returns the first byte that is missing.
  uint64_t arrived(uint64_t expected, uint64_t from, uint64_t to);
};

}  // namespace cairn::net
