// SPDX-License-Identifier: Apache-2.0
// ParityLog: how an update reaches legs so that no crash leaves half of it. First into the log of
// each, then into place; when the log is full, all is flushed and a new epoch begins.
//
// It has the memory of updates too: whoever computes has units of it, and whoever has all of them
// is alone with the legs.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "drive/join.h"
#include "service/raid/parity_epoch.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_shape.h"
#include "service/raid/parity_update.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

class ParityLog {
 public:
  // Who stands behind an update.
  class Waiter {
   public:
    // More legs fail than parity can replace: the update goes on when they answer, and nobody
    // waits for that.
    virtual void update_is_stuck(const Result<void>& why) = 0;

   protected:
    ~Waiter() = default;
  };

  // What legs hold in their logs is not known yet: replay() or begin_empty() comes first.
  ParityLog(const ParityContext& context, ParityLegs& legs, ParityEpoch& epoch);

  // Whether nothing can be changed now.
  bool is_stuck() const { return is_broken_ || stuck_ > 0; }
  static Result<void> stuck() { return fail(Errc::kIo, "more legs fail than parity can replace"); }
  // An update was given up: the next start judges it, and nothing more is changed.
  bool is_broken() const { return is_broken_; }
  void give_up() { is_broken_ = true; }
  uint64_t used() const { return head_; }  // blocks

  // A place in the log and in memory. Whoever calls it has the rows, so that entries about the same
  // rows are in the log in the order of the changes.
  task::Task<Result<void>> admit(ParityUpdate& update, task::CancelToken token);
  // Done when all legs have it that are not lost.
  task::Task<Result<void>> commit(ParityUpdate& update, Waiter& waiter);

  // The memory to compute with that many rows, in units.
  task::Semaphore& memory() { return units_; }
  uint64_t units_of(uint64_t rows) const;
  // All of it.
  task::Task<Result<task::Units>> stop_updates(task::CancelToken token);

  // For whoever has all units.
  void begin_empty() { head_ = 0; }
  task::Task<Result<void>> replay();
  // What is in place becomes durable; then a new epoch ends the entries of the log. After a failure
  // the log takes no entries until it succeeds.
  task::Task<Result<void>> checkpoint();

  // A leg may have forgotten what was put into place: it is put there again in the background.
  void recover();
  // When that was tried since the last such leg.
  task::Event& recovery_tried() { return recovery_tried_; }

  // When no updates are under way any more. Requests `closing` before.
  task::Task<void> close();

 private:
  enum class Step : uint8_t { kLog, kPlace };
  task::Task<Result<void>> carry_out(ParityUpdate& update, Step step, Waiter& waiter);
  task::Task<void> log_on(size_t leg, ParityUpdate& update, LegSet legs, ParityOutcome& outcome,
                          Join& join);
  task::Task<Result<void>> make_space(uint64_t room, task::CancelToken token);
  task::Task<void> run_recovery();

  static constexpr uint64_t kUnits = 2048;  // of 4 KiB

  const ParityContext& context_;
  ParityLegs& legs_;
  ParityEpoch& epoch_;
  task::Semaphore units_{kUnits};
  uint64_t head_;             // where the next entry goes
  bool must_replay_ = false;  // a flush failed: what is in place may not last
  uint32_t stuck_ = 0;        // updates that wait for a leg that cannot be dropped
  bool is_broken_ = false;
  bool recovery_runs_ = false;
  task::Event recovery_tried_;
};

}  // namespace cairn::drive
