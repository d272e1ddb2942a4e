// SPDX-License-Identifier: Apache-2.0
// Trace: what happened, as small facts in order. In the simulator their hash is the run's identity.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace cairn::env {

// `what` is a string literal such as "fabric.reconnect"; a and b mean what the place says.
struct TraceEvent {
  Time at;
  const char* what = nullptr;
  uint64_t a = 0;
  uint64_t b = 0;
};

// One per core. Costs a test and a branch when nobody listens.
class Trace {
 public:
  void record(const char* what, uint64_t a = 0, uint64_t b = 0) {
    if (enabled_) [[unlikely]]
      write(what, a, b);
  }
  bool enabled() const { return enabled_; }

 protected:
  ~Trace() = default;
  virtual void write(const char* what, uint64_t a, uint64_t b) = 0;
  bool enabled_ = false;
};

}  // namespace cairn::env
