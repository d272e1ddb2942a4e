// SPDX-License-Identifier: Apache-2.0
#include "model/net/tcp_window.h"

#include <algorithm>

#include "base/portable_math.h"

namespace cairn::net {

TcpWindow::TcpWindow(const Parameters& p)
    : window_(static_cast<double>(p.tcp.initial_window_packets) * p.payload_bytes),
      window_max_(static_cast<double>(p.tcp.window_bytes_max)) {
  window_ = std::min(window_, window_max_);
}

void TcpWindow::acknowledged(const TcpAck& ack, const Parameters& p) {
  if (p.control == Control::kDctcp) count_marks(ack, p);
  if (slow_start()) {
    window_ += static_cast<double>(ack.newly);
  } else if (p.control == Control::kCubic) {
    grow_cubic(ack, p);
  } else {
    grow_reno(ack.newly, p.payload_bytes);
  }
  window_ = std::min(window_, window_max_);
}

// RFC 8257, section 3.3: alpha is the part of bytes that is marked, smoothed; a window with marks
// is cut by half of it.
void TcpWindow::count_marks(const TcpAck& ack, const Parameters& p) {
  acked_bytes_ += ack.newly;
  if (ack.marked) marked_bytes_ += ack.newly;
  if (ack.acked > window_end_) {
    const double part = static_cast<double>(marked_bytes_) / static_cast<double>(acked_bytes_);
    alpha_ += p.tcp.dctcp_gain * (part - alpha_);
    acked_bytes_ = marked_bytes_ = 0;
    window_end_ = ack.sent;
  }
  if (ack.marked && ack.acked > cut_until_) {
    cut(1 - alpha_ / 2, p.payload_bytes);
    cut_until_ = ack.sent;
  }
}

void TcpWindow::grow_reno(uint64_t newly, double segment) {
  window_ += segment * static_cast<double>(newly) / window_;
}

// RFC 9438, section 4.2: towards where the cubic is one round trip from now, and never slower than
// Reno would be.
void TcpWindow::grow_cubic(const TcpAck& ack, const Parameters& p) {
  const double segment = p.payload_bytes;
  const double window = window_ / segment;
  const double beta = p.tcp.cubic_beta;
  if (epoch_ < 0) {
    epoch_ = ack.now;
    plateau_ = std::max(plateau_, window);
    plateau_after_s_ = cube_root((plateau_ - window) / p.tcp.cubic_c);
    friendly_ = window;
  }
  const auto cubic = [&](Picos at) {
    const double t = static_cast<double>(at - epoch_) / static_cast<double>(kSecond);
    return p.tcp.cubic_c * whole_power(t - plateau_after_s_, 3) + plateau_;
  };
  const double segments = static_cast<double>(ack.newly) / segment;
  friendly_ += 3 * (1 - beta) / (1 + beta) * segments / window;
  if (cubic(ack.now) < friendly_) {
    window_ = std::max(window_, friendly_ * segment);
    return;
  }
  const double target = std::clamp(cubic(ack.now + ack.round_trip), window, 1.5 * window);
  window_ += segment * segments * (target - window) / window;
}

void TcpWindow::lost(const Parameters& p) {
  const double segment = p.payload_bytes;
  if (p.control == Control::kDctcp) {
    cut(0.5, segment);
    return;
  }
  const double window = window_ / segment;
  // Fast convergence: a flow that did not get back to its plateau leaves room for others.
  plateau_ = window < plateau_ ? window * (1 + p.tcp.cubic_beta) / 2 : window;
  epoch_ = -1;
  cut(p.tcp.cubic_beta, segment);
}

void TcpWindow::timed_out(uint64_t on_the_way, const Parameters& p) {
  const double segment = p.payload_bytes;
  plateau_ = window_ / segment;
  epoch_ = -1;
  threshold_ = std::max(static_cast<double>(on_the_way) / 2, 2 * segment);
  window_ = segment;
}

void TcpWindow::cut(double factor, double segment) {
  window_ = std::max(window_ * factor, 2 * segment);
  threshold_ = window_;
}

}  // namespace cairn::net
