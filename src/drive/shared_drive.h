// SPDX-License-Identifier: Apache-2.0
// SharedDrive: one drive on one core, its home, that every core can use.
//
// A stack of services is open once, so it has a home; drives on other cores send their requests
// there and get them back, as messages, with the memory they were given: nothing is copied, and no
// request costs an allocation once as many were in flight together before. Of each drive that was
// opened elsewhere kTravellingMax requests are on their way at once, and others wait for their
// turn, in order. Cancelling one travels the same way; one that waits ends at once. On the home
// core requests go straight to the drive. A core knows of another
// incarnation of the drive before it gets the first answer of that one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "drive/drive.h"
#include "drive/source.h"
#include "env/env.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::drive {

class SharedDrive final : public Source {
 public:
  static constexpr size_t kTravellingMax = 4096;

  // What it tells of when it was opened.
  enum class Opening : uint8_t {
    kNew,      // now: services that are opened again lose what they had not written down
    kOfDrive,  // what the drive says: it was in use before it was shared, and goes on
  };
  // On the home core. Closed before it is destroyed, on whichever core.
  SharedDrive(env::Env& home, std::unique_ptr<Drive> drive, Opening opening = Opening::kNew);

  Result<std::unique_ptr<Drive>> open(env::Env& env) override;
  // On any core, when every drive it opened is closed. Afterwards the drive is gone.
  task::Task<void> close(env::Env& env) override;
  task::Task<Extent> extent_at(env::Env& env, const Drive& opened, Lba lba, uint64_t max) override;

  // As Drive::resize, on any core; every core knows the size when it is done. The size it has
  // already is no change.
  task::Task<Result<void>> resize(env::Env& env, uint64_t blocks);

  CoreId core() const { return core_; }
  // To be used on the home core alone.
  Drive& drive() { return *drive_; }

 private:
  class Near;
  class Far;
  struct Ticket;

  // On the home core.
  Incarnation incarnation_here() const;
  void take(Ticket& ticket);
  task::Task<void> serve(Ticket& ticket);
  void send_back(Ticket& ticket);
  task::Task<Result<void>> resize_here(uint64_t blocks);
  task::Task<void> close_here();

  env::Env& env_;  // of the home core
  const CoreId core_;
  const uint64_t opening_;  // drawn here; 0: that of the drive
  // By core, each looked at and changed there alone.
  std::vector<Geometry> geometries_;
  std::vector<Incarnation> incarnations_;  // as of the last answer that came there
  std::unique_ptr<Drive> drive_;
  task::Gate gate_;  // requests of other cores
};

}  // namespace cairn::drive
