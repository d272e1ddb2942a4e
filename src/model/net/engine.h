// SPDX-License-Identifier: Apache-2.0
// What both modes of the model are behind Network.
#pragma once

#include "model/net/counters.h"
#include "model/net/flow.h"

namespace cairn::net {

// The contract of each function is that of its namesake in network.h.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void start(const Flow& flow) = 0;
  virtual Picos next_event() const = 0;
  virtual void advance(Picos until, FlowSink& sink) = 0;
  virtual Picos now() const = 0;
  virtual const Counters& counters() const = 0;
  virtual uint64_t unfinished() const = 0;
};

}  // namespace cairn::net
