// SPDX-License-Identifier: Apache-2.0
// How many bytes a TCP sender may have on the way: DCTCP (RFC 8257) or Cubic (RFC 9438).
#pragma once

#include <cstdint>

#include "model/net/parameters.h"

namespace cairn::net {

// An acknowledgement that moved forward.
struct TcpAck {
  Picos now = 0;
  uint64_t acked = 0;   // everything before this byte has arrived
  uint64_t newly = 0;   // bytes of it that are new
  uint64_t sent = 0;    // the next byte the sender would send
  bool marked = false;  // the receiver saw a mark
  Picos round_trip = 0;
};

class TcpWindow {
 public:
  TcpWindow() = default;
  explicit TcpWindow(const Parameters& p);

  uint64_t bytes() const { return static_cast<uint64_t>(window_); }
  bool slow_start() const { return window_ < threshold_; }
  double alpha() const { return alpha_; }

  void acknowledged(const TcpAck& ack, const Parameters& p);
  // A packet is missing and will be sent again.
  void lost(const Parameters& p);
  // Nothing came back for a long time.
  void timed_out(uint64_t on_the_way, const Parameters& p);

 private:
  void count_marks(const TcpAck& ack, const Parameters& p);
  void grow_reno(uint64_t newly, double segment);
  void grow_cubic(const TcpAck& ack, const Parameters& p);
  void cut(double factor, double segment);

  double window_ = 0;
  double threshold_ = 1e18;
  double window_max_ = 0;

  // DCTCP: one observation per window of data.
  double alpha_ = 1;
  uint64_t window_end_ = 0;
  uint64_t acked_bytes_ = 0;
  uint64_t marked_bytes_ = 0;
  uint64_t cut_until_ = 0;  // a window is cut once

  // Cubic, in segments and seconds.
  Picos epoch_ = -1;
  double plateau_ = 0;
  double plateau_after_s_ = 0;
  double friendly_ = 0;
};

}  // namespace cairn::net
