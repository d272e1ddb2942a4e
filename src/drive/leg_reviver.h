// SPDX-License-Identifier: Apache-2.0
// LegReviver: takes lost legs back, or puts spares in their places.
#pragma once

#include <cstddef>

#include "base/units.h"
#include "drive/legs.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::drive {

// Runs only while a leg is lost and something can be done about it.
class LegReviver {
 public:
  // What the service does for a leg that is lost.
  class Owner {
   public:
    // True: it answers, is who it was, and will get what it missed.
    virtual task::Task<bool> revive(size_t leg) = 0;
    // A spare takes its place, if that can be made known.
    virtual task::Task<void> replace(size_t leg) = 0;

   protected:
    ~Owner() = default;
  };

  // `gate` is closed after `closing` was requested, and before any of the others goes.
  LegReviver(env::Env& env, Owner& owner, Legs& legs, Duration retry, task::CancelToken closing,
             task::Gate& gate);

  // A leg is lost: it is tried again every `retry` until it is not.
  void wake();

 private:
  bool has_work() const;
  task::Task<void> run();

  env::Env& env_;
  Owner& owner_;
  Legs& legs_;
  const Duration retry_;
  const task::CancelToken closing_;
  task::Gate& gate_;
  bool runs_ = false;
};

}  // namespace cairn::drive
