// SPDX-License-Identifier: Apache-2.0
// Flows as rates that share links fairly: an event per arrival and departure.
#pragma once

#include <queue>
#include <vector>

#include "model/flash/event_queue.h"
#include "model/flash/pool.h"
#include "model/net/engine.h"
#include "model/net/fair_shares.h"
#include "model/net/parameters.h"
#include "model/net/routes.h"
#include "model/net/topology.h"

namespace cairn::net {

// A flow has its fair share from its start until its last byte has left the sender; what packets
// would wait for on the way without others is added: link delays, one frame per hop, and the way
// back of the acknowledgement. Queues, PAUSE, marks and losses do not exist.
class FluidNetwork final : public Engine {
 public:
  FluidNetwork(const Topology& topology, const Parameters& parameters);

  void start(const Flow& flow) override;
  Picos next_event() const override;
  void advance(Picos until, FlowSink& sink) override;
  Picos now() const override { return now_; }
  const Counters& counters() const override { return counters_; }
  uint64_t unfinished() const override {
    return counters_.flows_started - counters_.flows_finished;
  }

 private:
  struct FluidFlow {
    Flow flow;
    uint32_t next = 0;
    std::vector<uint32_t> path;
    std::vector<uint32_t> back;  // of the acknowledgements
    double left = 0;             // bytes on the wire
    Picos received_after = 0;    // the last byte left the sender
    Picos finished_after = 0;
    FlowDone done;
  };

  void begin(uint32_t index);
  Picos way_of_last(const std::vector<uint32_t>& path, uint64_t payload,
                    bool follows_another) const;
  void leave(size_t place);
  // Lets the flows run at their rates until `time`.
  void run_until(Picos time);
  void share();

  const Topology topology_;
  const Parameters parameters_;
  Routes routes_;
  FairShares shares_;
  Picos now_ = 0;
  uint64_t order_ = 0;
  flash::Pool<FluidFlow> flows_;
  flash::EventHeap arrivals_;
  flash::EventHeap completions_;
  std::vector<uint32_t> active_;
  std::vector<double> acks_;   // what acknowledgements take of each port
  std::vector<double> rates_;  // of active flows, bytes per picosecond
  Picos departure_ = kNever;   // of the first active flow that leaves
  std::vector<uint16_t> next_source_port_;
  Counters counters_;
};

}  // namespace cairn::net
