// SPDX-License-Identifier: Apache-2.0
// LegReviver: takes lost legs back, those too that were not there when the service opened, or puts
// spares in their places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/units.h"
#include "env/env.h"
#include "service/common/service.h"
#include "service/raid/legs.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

enum class Newcomer : uint8_t {
  kTaken,    // it is one of the service's drives now
  kSilent,   // it cannot be read
  kForeign,  // it holds something else, or cannot be a leg: it is left alone
};

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
    // Judges a drive that was absent, by its label, and takes it if it is one of its own.
    virtual task::Task<Newcomer> meet(std::unique_ptr<Drive>& drive) = 0;

   protected:
    ~Owner() = default;
  };

  // `gate` is closed after `closing` was requested, and before any of the others goes. `late` may
  // be null.
  LegReviver(env::Env& env, Owner& owner, Legs& legs, LateDrives* late, Duration retry,
             task::CancelToken closing, task::Gate& gate);

  // A leg is lost: it is tried again every `retry` until it is not. Drives that are absent are
  // tried after `retry` too, then ever more rarely, up to 16 times that.
  void wake();
  // All are tried at once. The answer to whoever demanded it.
  std::string try_now();

 private:
  bool has_work() const;
  task::Task<void> run();
  task::Task<void> call_absent();
  // False: it is to be tried again.
  task::Task<bool> call(AbsentDrive& one);
  // Of a lost leg whose drive has changed: services that stand on it have to begin anew.
  task::Task<bool> renew(size_t leg);

  env::Env& env_;
  Owner& owner_;
  Legs& legs_;
  LateDrives* const late_;
  const Duration retry_;
  const task::CancelToken closing_;
  task::Gate& gate_;
  task::Event demanded_;
  Duration absent_pause_;
  Time absent_next_;
  bool runs_ = false;
};

}  // namespace cairn::drive
