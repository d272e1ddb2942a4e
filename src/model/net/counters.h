// SPDX-License-Identifier: Apache-2.0
// What a modelled network has done so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/net/flow.h"

namespace cairn::net {

// A number per bin of time, from time 0 on; bins after the last that was touched are zero and
// absent.
class Series {
 public:
  void add(Picos time, Picos bin, uint64_t amount) {
    if (bin > 0) at(time, bin) += amount;
  }
  void raise(Picos time, Picos bin, uint64_t level) {
    if (bin > 0) {
      uint64_t& value = at(time, bin);
      value = std::max(value, level);
    }
  }
  const std::vector<uint64_t>& bins() const { return bins_; }

 private:
  uint64_t& at(Picos time, Picos bin) {
    const auto index = static_cast<size_t>(time / bin);
    if (index >= bins_.size()) bins_.resize(index + 1);
    return bins_[index];
  }

  std::vector<uint64_t> bins_;
};

// One direction of a link: what the port at its beginning sent and received.
struct PortCounters {
  uint32_t node = 0;
  uint32_t peer = 0;
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t data_bytes = 0;  // of data frames, headers included
  uint64_t marks = 0;
  uint64_t drops = 0;            // packets that wanted to leave here
  uint64_t pauses_received = 0;  // PAUSE frames that stopped this port
  uint64_t resumes_received = 0;
  uint64_t queue_bytes_max = 0;
  Series sent_bytes;
  Series pauses;
  Series queue_bytes;  // the most in each bin
};

struct Counters {
  uint64_t events = 0;
  uint64_t flows_started = 0;
  uint64_t flows_finished = 0;
  uint64_t data_packets = 0;  // put on the wire by hosts, repeated ones included
  uint64_t repeated_packets = 0;
  uint64_t acks = 0;
  uint64_t payload_bytes_sent = 0;
  uint64_t payload_bytes_delivered = 0;  // in order, each once
  uint64_t link_packets = 0;             // over all links
  uint64_t marks = 0;
  uint64_t mark_draws = 0;  // of packets of which chance decided whether they are marked
  uint64_t drops = 0;
  uint64_t pauses_at_hosts = 0;  // PAUSE frames by what received them
  uint64_t pauses_at_switches = 0;
  uint64_t resumes = 0;
  Picos first_pause = -1;
  Picos last_pause = -1;
  Picos bin = 0;
  std::vector<PortCounters> ports;
};

}  // namespace cairn::net
