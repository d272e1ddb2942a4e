// SPDX-License-Identifier: Apache-2.0
// What tests of networks have in common.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "model/net/network.h"

namespace cairn::net {

struct Completions final : FlowSink {
  void flow_done(const FlowDone& done) override {
    all.push_back(done);
    ++times[done.tag];
  }
  Picos last() const {
    Picos latest = 0;
    for (const FlowDone& done : all) latest = std::max(latest, done.finished);
    return latest;
  }
  Picos of(uint64_t tag) const {
    for (const FlowDone& done : all) {
      if (done.tag == tag) return done.finished;
    }
    return -1;
  }

  std::vector<FlowDone> all;
  std::map<uint64_t, int> times;  // by tag
};

// Hosts 1 to `senders` send to host 0, all at once; tags are the senders.
inline void start_incast(Network& network, uint32_t senders, uint64_t bytes) {
  for (uint32_t i = 1; i <= senders; ++i) {
    network.start(
        {.tag = i, .source = i, .destination = 0, .bytes = bytes, .start = network.now()});
  }
}

}  // namespace cairn::net
