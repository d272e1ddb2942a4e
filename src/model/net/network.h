// SPDX-License-Identifier: Apache-2.0
// The way into the network model: flows go in with a time, completions come out with one.
#pragma once

#include <memory>

#include "model/net/counters.h"
#include "model/net/flow.h"
#include "model/net/parameters.h"
#include "model/net/topology.h"

namespace cairn::net {

class Engine;

// No I/O, no clock, no threads: the same flows in the same order give the same completions. One
// core at a time may use it.
class Network {
 public:
  // `topology.problem()` and `check(parameters)` must both have found nothing.
  Network(const Topology& topology, const Parameters& parameters);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  // Source and destination are two hosts of the topology, bytes is above 0, priority from 1 to 7,
  // and start at least now(). Flows of one moment start in the order of the calls.
  void start(const Flow& flow);

  // When something happens next; kNever when nothing does until another flow is started.
  Picos next_event() const;

  // Lets everything up to and including `until` happen. now() is `until` afterwards, and inside
  // FlowSink the time of the completion. An `until` of kNever runs until nothing is left, and
  // now() is then the time of the last event.
  void advance(Picos until, FlowSink& sink);

  Picos now() const;
  // What the bins and totals count up to now(). Lives as long as the network.
  const Counters& counters() const;
  // Flows that were started and are not finished.
  uint64_t unfinished() const;

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace cairn::net
