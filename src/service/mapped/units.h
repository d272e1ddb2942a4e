// SPDX-License-Identifier: Apache-2.0
// Units: the places of chunks on one drive, taken and returned in the order a journal demands.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "service/common/claim.h"
#include "service/common/journal.h"
#include "service/common/space.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

// A unit that is given up is discarded on the drive below once the record that says so is durable,
// and is free after that.
class Units {
 public:
  struct Options {
    uint64_t first = 0;   // block of unit 0
    uint64_t blocks = 0;  // of a unit
    uint64_t count = 0;
  };
  Units(Drive& drive, const Options& options)
      : drive_(drive), options_(options), space_(options.count) {}

  Drive& drive() { return drive_; }
  Space& space() { return space_; }
  const Space& space() const { return space_; }
  // In use, and on their way to be free.
  uint64_t used() const { return space_.used() - cleaning_; }
  uint64_t returning() const { return space_.on_their_way() + cleaning_; }
  uint64_t block_of(uint64_t unit) const { return options_.first + unit * options_.blocks; }

  // A unit for the caller. When none is free but some are on their way back, it commits the journal
  // and waits for them. kNoSpace: all are in use; errors of the journal and the token.
  task::Task<Result<uint64_t>> take(Journal& journal, task::CancelToken token);
  // Commits the journal and waits until some of those on their way back are free, or none can be
  // now: what is given up meanwhile needs another call.
  task::Task<Result<void>> bring_back(Journal& journal, task::CancelToken token);
  // Returns in the background what can be by now.
  void return_some(Journal& journal);
  // The same, done when it is.
  task::Task<void> return_now(Journal& journal);
  // All are free: their owner claims anew what it finds in use. Nobody takes or gives any
  // meanwhile.
  task::Task<void> restart();
  // Once, when the map was read: a free unit may hold space below all the same, for a crash came
  // before its discard, or before the record of what was written there. It is discarded in the
  // background if the drive below tells holes; one that knows none is left alone. The claim, of the
  // drive that has the label, outlives it.
  void reclaim(env::Env& env, Claim& claim) { gate_.spawn(reclaim_all(env, claim)); }
  task::Task<void> close() {
    closing_.request();
    return gate_.close();
  }

 private:
  // Looks at free units from `next` on, a few at a time; false: at none, it is over. What they hold
  // is given back if `gives`, else the first hole ends it.
  struct Walk {
    bool gives = false;
    bool has_hole = false;
    uint64_t next = 0;
    uint64_t restarts = 0;  // when it began
  };
  task::Task<void> reclaim_all(env::Env& env, Claim& claim);
  task::Task<bool> reclaim_some(Claim& claim, Walk& walk);
  task::Task<bool> discard_held(Claim& claim, Space::Run run, Walk& walk);

  Drive& drive_;
  const Options options_;
  Space space_;
  uint64_t cleaning_ = 0;    // being discarded
  task::Semaphore turn_{1};  // who returns units
  task::Event returned_;     // some are free, or nothing more can be returned now
  uint64_t restarts_ = 0;
  task::CancelSource closing_;
  task::Gate gate_;
};

}  // namespace cairn::drive
