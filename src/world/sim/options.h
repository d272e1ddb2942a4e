// SPDX-License-Identifier: Apache-2.0
// Everything a simulated run depends on besides the programs: one value, drawn or written down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/buffer.h"
#include "base/units.h"
#include "world/sim/model/model.h"

namespace cairn::sim {

// Probabilities per segment between two nodes; all off by default.
struct NetworkFaults {
  double segment = 0;  // cut short at any byte; also inside a node
  double delay = 0;    // late by up to delay_max; those behind it wait
  Duration delay_max = 20_ms;
  double clog = 0;  // the link then holds everything for up to clog_max
  Duration clog_max = 300_ms;
  double reset = 0;         // the connection is reset
  double bit_flip = 0;      // one bit arrives wrong; TCP's checksum lets such things through
  double accept_limit = 0;  // per accept: kLimit, as when descriptors run out

  // Rough but correct: everything TCP allows, no bit flips.
  static NetworkFaults rough() {
    return {.segment = 0.3, .delay = 0.02, .clog = 0.0005, .reset = 0.0002, .accept_limit = 0.01};
  }
};

// One place on the wire. The sender's stream accepts so many bytes and no more before they have
// arrived: a short send at one end, a partial receive at the other, at exactly this byte.
struct WireCut {
  uint64_t connection = 0;  // in the order in which they were begun, from 0
  bool to_server = true;    // the direction; else to who connected
  uint64_t position = 0;    // bytes before it, from the first of the connection
  bool breaks = false;      // the connection is then reset, at both ends, before any answer
};

struct NetworkOptions {
  // Makes the run's model; null: SimpleNetwork.
  std::function<std::unique_ptr<NetworkModel>(uint64_t seed)> model;
  NetworkFaults faults;
  std::optional<WireCut> cut;
  Duration jitter_max = 5_us;  // added to every arrival; order is kept
  uint32_t send_buffer_size = 256 << 10;
  uint32_t receive_buffer_size = 256 << 10;
  uint32_t segment_size_max = 64 << 10;
  Duration syn_retry = 1_s;  // first retry of a connect that got no answer; doubles each time
  Duration connect_timeout = 30_s;
  Duration held_limit = 20_s;       // a sender gives up (kTimedOut) when its bytes are held longer
  Duration retransmit_max = 50_ms;  // held bytes move on at most this long after healing
};

// Probabilities per request of a disk; all off by default.
struct DiskFaults {
  double slow = 0;  // takes up to slow_max longer
  Duration slow_max = 200_ms;
  double stall = 0;  // the whole disk stands still for up to stall_max
  Duration stall_max = 2_s;
  double read_error = 0;   // kIo; the next try may succeed
  double write_error = 0;  // kIo, and any subset of the blocks changed
  double flush_error = 0;  // kIo, and what was not durable may never be
  double latent = 0;       // per write: one of its blocks cannot be read until it is rewritten
  double lost = 0;         // per write: acknowledged, never stored
  double misdirected = 0;  // per write: acknowledged, stored somewhere else

  // What a correct drive does on a bad day: slow, stalling, failing, never lying.
  static DiskFaults rough() {
    return {.slow = 0.02, .stall = 0.0002, .read_error = 0.001, .write_error = 0.001};
  }
};

struct DiskMediumOptions {
  // Makes the model of one disk; null: SimpleDisk.
  std::function<std::unique_ptr<DiskModel>(uint64_t seed)> model;
  DiskFaults faults;
  uint32_t block_size = 4096;  // of a new disk whose opener does not ask for another
};

struct BuggifyOptions {
  double site = 0.25;  // the probability that a site is enabled in a run
  double call = 0.05;  // and then of each call to be true
};

struct ClusterOptions {
  uint64_t seed = 1;
  NetworkOptions network;
  DiskMediumOptions disk;
  BuggifyOptions buggify;
  size_t trace_capacity = 256;
  Duration message_delay_max = 2_us;  // between cores of a node
  Duration wake_delay_max;            // until a core gets to what completed; 0: at once
};

struct ClockOptions {
  Duration wall_offset;       // how wrong its wall clock is at first
  Duration monotonic_offset;  // where its monotonic clock begins
  int32_t drift_ppm = 0;      // how much faster than true time both run
};

struct NodeOptions {
  uint32_t cores = 1;
  // The name of a node on whose machine this one is another process: they have one clock (that
  // node's), the same disks and local sockets, no network between them, and lose power together.
  std::string beside;
  ClockOptions clock;
  // Smaller than a real core's: there may be hundreds of simulated ones.
  BufferPoolOptions buffers = {
      .classes = {{4096, 1024}, {16384, 128}, {65536, 64}, {262144, 16}, {1048576, 8}}};
};

}  // namespace cairn::sim
