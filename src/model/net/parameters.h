// SPDX-License-Identifier: Apache-2.0
// How a network behaves: frames, buffers, PAUSE, marks, and how hosts send.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/net/flow.h"

namespace cairn::net {

enum class Mode : uint8_t {
  kPacket,  // every packet on every hop
  kFluid,   // flows as rates that share links fairly; see docs/net.md for what that leaves out
};

// How a sender finds its rate.
enum class Control : uint8_t {
  kNone,   // line rate: only PAUSE slows it down
  kDcqcn,  // a rate per flow, cut on marks (Zhu et al., SIGCOMM 2015)
  kDctcp,  // a window, cut by the part that is marked (RFC 8257)
  kCubic,  // a window that grows as a cubic of time (RFC 9438)
};

struct PfcParameters {
  bool enabled = true;
  uint32_t reserve_bytes = 4096;        // per port and priority
  uint32_t resume_offset_bytes = 3072;  // how far below the threshold RESUME is sent
  // The threshold is what is free of the shared buffer >> shift; at ports faster than the hosts'
  // the shift is one less for every doubling.
  uint32_t threshold_shift = 3;
  // Headroom of a port: this many link delays of its rate, and these bytes on top. Two delays, two
  // frames that have started, and the PAUSE frame are what is needed to lose nothing.
  double headroom_delays = 2;
  std::optional<uint32_t> headroom_extra_bytes;  // nothing: as much as is needed
};

// Marks begin at kmin, reach probability pmax at kmax, and are certain above.
struct EcnThreshold {
  uint64_t at_rate = 10'000'000'000;
  uint32_t kmin_bytes = 40'000;
  uint32_t kmax_bytes = 160'000;
  double pmax = 0.2;
};

struct EcnParameters {
  bool enabled = true;
  // Links of other rates have the first, in proportion to their rate. Never empty.
  std::vector<EcnThreshold> thresholds = {EcnThreshold{}};

  EcnThreshold at(uint64_t bits_per_s) const;
};

struct DcqcnParameters {
  Picos alpha_interval = 50 * kMicrosecond;
  Picos decrease_interval = 50 * kMicrosecond;
  Picos increase_interval = 55 * kMicrosecond;
  double gain = 1.0 / 256;
  uint32_t fast_recovery_stages = 5;
  uint64_t additive_bits_per_s = 40'000'000;
  uint64_t hyper_bits_per_s = 100'000'000;
  uint64_t min_bits_per_s = 100'000'000;
  double rate_on_first_mark = 1;
  bool clamp_target = false;
  // The least time between two congestion notifications of one flow; 0 puts one into every
  // acknowledgement of a marked packet.
  Picos notification_interval = 50 * kMicrosecond;
};

struct TcpParameters {
  uint32_t initial_window_packets = 10;
  uint64_t window_bytes_max = 4ULL << 20;
  Picos timeout_min = 1 * kMillisecond;
  double dctcp_gain = 1.0 / 16;
  double cubic_c = 0.4;
  double cubic_beta = 0.7;
  uint32_t packets_per_ack = 1;  // 2: delayed acknowledgements
  Picos delayed_ack = 500 * kMicrosecond;
};

struct Parameters {
  Mode mode = Mode::kPacket;
  Control control = Control::kDcqcn;
  // Reproduces what shapes the numbers of the HPCC ns-3 reference; see docs/net.md.
  bool hpcc = false;

  // Frames. A data frame carries up to `payload_bytes` and `header_bytes` on top.
  uint32_t payload_bytes = 1000;
  uint32_t header_bytes = 48;
  uint32_t ack_bytes = 60;
  uint32_t pause_bytes = 64;
  // Switches treat acknowledgements like data of the flow's priority; else they are never paused,
  // never dropped, and go before data.
  bool acks_wait_with_data = false;

  // Switches.
  uint64_t buffer_bytes = 12ULL << 20;
  uint64_t queue_bytes_max = UINT64_MAX;  // drop-tail limit of one egress queue
  PfcParameters pfc;
  EcnParameters ecn;

  // Hosts.
  DcqcnParameters dcqcn;
  TcpParameters tcp;
  // Of rate-controlled flows: how long after a NACK the same gap may be told again, and how long
  // without progress until everything unacknowledged is sent again; 0 means never.
  Picos nack_interval = 500 * kMicrosecond;
  Picos retransmit_timeout = 100 * kMillisecond;

  // Counters over time have bins of this width; 0 keeps none.
  Picos bin = 0;

  uint64_t seed = 1;

  bool windowed() const { return control == Control::kDctcp || control == Control::kCubic; }
  uint32_t frame_bytes_max() const { return payload_bytes + header_bytes; }
};

struct ParameterProblem {
  std::string member;
  std::string text;
};

// Nothing when a network can run with them.
std::optional<ParameterProblem> check(const Parameters& parameters);

// What the reference fixes outside its configuration files.
Parameters hpcc_parameters();

// TCP over switches that drop: no PAUSE, marks at a single threshold (DCTCP) or none (Cubic).
Parameters tcp_parameters(Control control);

}  // namespace cairn::net
