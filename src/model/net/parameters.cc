// SPDX-License-Identifier: Apache-2.0
#include "model/net/parameters.h"

#include <algorithm>

namespace cairn::net {

namespace {

constexpr double kLargest = 1U << 31;

std::optional<ParameterProblem> check_frames(const Parameters& p) {
  if (p.payload_bytes == 0 || p.payload_bytes > 65'536) {
    return ParameterProblem{"payload_bytes", "must be from 1 to 65536"};
  }
  if (p.header_bytes > 1024) return ParameterProblem{"header_bytes", "must be at most 1024"};
  if (p.ack_bytes == 0 || p.ack_bytes > 9000) {
    return ParameterProblem{"ack_bytes", "must be from 1 to 9000"};
  }
  if (p.pause_bytes == 0 || p.pause_bytes > 9000) {
    return ParameterProblem{"pause_bytes", "must be from 1 to 9000"};
  }
  if (p.buffer_bytes < p.frame_bytes_max() || p.buffer_bytes > (1ULL << 31)) {
    return ParameterProblem{"buffer_bytes", "must be from one frame to 2 GiB"};
  }
  if (p.queue_bytes_max < p.frame_bytes_max()) {
    return ParameterProblem{"queue_bytes_max", "must hold at least one frame"};
  }
  return std::nullopt;
}

std::optional<ParameterProblem> check_switches(const Parameters& p) {
  if (p.pfc.threshold_shift > 16) return ParameterProblem{"threshold_shift", "must be at most 16"};
  if (!(p.pfc.headroom_delays >= 0 && p.pfc.headroom_delays <= 100)) {
    return ParameterProblem{"headroom_delays", "must be from 0 to 100"};
  }
  if (p.ecn.thresholds.empty()) return ParameterProblem{"thresholds", "must not be empty"};
  for (const EcnThreshold& t : p.ecn.thresholds) {
    if (t.kmin_bytes > t.kmax_bytes) {
      return ParameterProblem{"kmin_bytes", "must be at most kmax_bytes"};
    }
    if (!(t.pmax >= 0 && t.pmax <= 1)) {
      return ParameterProblem{"pmax", "must be a probability from 0 to 1"};
    }
    if (t.at_rate == 0) return ParameterProblem{"at_rate", "must be above 0"};
  }
  return std::nullopt;
}

std::optional<ParameterProblem> check_hosts(const Parameters& p) {
  const DcqcnParameters& d = p.dcqcn;
  if (d.alpha_interval <= 0) return ParameterProblem{"alpha_interval", "must be above 0"};
  if (d.decrease_interval <= 0) return ParameterProblem{"decrease_interval", "must be above 0"};
  if (d.increase_interval <= 0) return ParameterProblem{"increase_interval", "must be above 0"};
  if (!(d.gain > 0 && d.gain <= 1)) return ParameterProblem{"gain", "must be above 0, at most 1"};
  if (d.min_bits_per_s == 0) return ParameterProblem{"min_bits_per_s", "must be above 0"};
  if (!(d.rate_on_first_mark > 0 && d.rate_on_first_mark <= 1)) {
    return ParameterProblem{"rate_on_first_mark", "must be above 0, at most 1"};
  }
  if (d.notification_interval < 0) {
    return ParameterProblem{"notification_interval", "must not be negative"};
  }
  const TcpParameters& t = p.tcp;
  if (t.initial_window_packets == 0) {
    return ParameterProblem{"initial_window_packets", "must be above 0"};
  }
  if (t.window_bytes_max < 2ULL * p.payload_bytes) {
    return ParameterProblem{"window_bytes_max", "must hold at least two packets"};
  }
  if (t.timeout_min <= 0) return ParameterProblem{"timeout_min", "must be above 0"};
  if (!(t.dctcp_gain > 0 && t.dctcp_gain <= 1)) {
    return ParameterProblem{"dctcp_gain", "must be above 0, at most 1"};
  }
  if (!(t.cubic_beta > 0 && t.cubic_beta < 1)) {
    return ParameterProblem{"cubic_beta", "must be between 0 and 1"};
  }
  if (!(t.cubic_c > 0 && t.cubic_c <= 100)) {
    return ParameterProblem{"cubic_c", "must be above 0, at most 100"};
  }
  if (t.packets_per_ack == 0) return ParameterProblem{"packets_per_ack", "must be above 0"};
  if (t.delayed_ack <= 0) return ParameterProblem{"delayed_ack", "must be above 0"};
  if (p.nack_interval < 0) return ParameterProblem{"nack_interval", "must not be negative"};
  if (p.retransmit_timeout < 0) {
    return ParameterProblem{"retransmit_timeout", "must not be negative"};
  }
  if (p.bin < 0) return ParameterProblem{"bin", "must not be negative"};
  return std::nullopt;
}

}  // namespace

EcnThreshold EcnParameters::at(uint64_t bits_per_s) const {
  for (const EcnThreshold& t : thresholds) {
    if (t.at_rate == bits_per_s) return t;
  }
  EcnThreshold scaled = thresholds.front();
  const double scale = static_cast<double>(bits_per_s) / static_cast<double>(scaled.at_rate);
  scaled.at_rate = bits_per_s;
  scaled.kmin_bytes = static_cast<uint32_t>(std::min(scaled.kmin_bytes * scale, kLargest));
  scaled.kmax_bytes = static_cast<uint32_t>(std::min(scaled.kmax_bytes * scale, kLargest));
  return scaled;
}

std::optional<ParameterProblem> check(const Parameters& parameters) {
  if (auto problem = check_frames(parameters)) return problem;
  if (auto problem = check_switches(parameters)) return problem;
  return check_hosts(parameters);
}

Parameters hpcc_parameters() {
  Parameters p;
  p.hpcc = true;
  p.pause_bytes = 43;
  p.pfc.headroom_delays = 3;
  p.pfc.headroom_extra_bytes = 0;
  p.dcqcn.notification_interval = 0;
  p.retransmit_timeout = 0;
  return p;
}

Parameters tcp_parameters(Control control) {
  Parameters p;
  p.control = control;
  p.payload_bytes = 1448;
  p.header_bytes = 90;  // Ethernet with preamble and gap, IPv4, TCP with time stamps
  p.ack_bytes = 90;
  p.pfc.enabled = false;
  p.queue_bytes_max = 512'000;
  p.ecn.enabled = control == Control::kDctcp;
  p.ecn.thresholds = {{.kmin_bytes = 100'000, .kmax_bytes = 100'000, .pmax = 1}};
  return p;
}

}  // namespace cairn::net
