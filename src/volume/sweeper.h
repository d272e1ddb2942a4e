// SPDX-License-Identifier: Apache-2.0
// Sweeper: takes away the marks of regions that nobody has changed for a while, once all that was
// written there is durable.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "service/common/write_intent.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"
#include "volume/lease.h"

namespace cairn::volume {

// One core.
class Sweeper {
 public:
  // Whose marks they are.
  class Owner {
   public:
    // Null: no extent has several legs.
    virtual drive::WriteIntent* intents() = 0;
    // Legs of some extent of the region may differ: its mark stays.
    virtual bool has_unequal(uint64_t region) const = 0;
    virtual task::Task<Result<void>> flush_legs(task::CancelToken token) = 0;
    // A leg that lacks something is known to, durably, before the mark that says so goes.
    virtual bool is_reported() const = 0;

   protected:
    ~Owner() = default;
  };
  // All of it outlives the sweeper.
  struct Parts {
    env::Env& env;
    Owner& owner;
    Lease& lease;
    task::CancelSource& closing;
    task::Gate& gate;  // of what it does by itself
  };
  Sweeper(Parts parts, Duration period) : parts_(parts), period_(period) {}

  // There are marks. It runs until there are none.
  void start();

 private:
  task::Task<void> run();
  task::Task<void> run_once(drive::WriteIntent& intents);

  const Parts parts_;
  const Duration period_;
  bool runs_ = false;
};

}  // namespace cairn::volume
