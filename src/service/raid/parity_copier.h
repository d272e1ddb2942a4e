// SPDX-License-Identifier: Apache-2.0
// ParityCopier: gives legs that are copied to what they lack, in the background, and calls them
// good when they have it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "drive/join.h"
#include "service/common/pace.h"
#include "service/common/region_set.h"
#include "service/raid/parity_epoch.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_log.h"
#include "service/raid/parity_rows.h"
#include "service/raid/parity_shape.h"
#include "task/task.h"

namespace cairn::drive {

class ParityCopier {
 public:
  ParityCopier(const ParityContext& context, ParityLegs& legs, ParityEpoch& epoch, ParityLog& log,
               ParityRows& rows, Pace& pace);

  // Regions that legs which are copied to lack, besides those that were known.
  void add(const RegionSet& regions);
  void add_all();
  // Runs until no leg is copied to.
  void wake();
  // That are still to be copied.
  const RegionSet& lacking() const { return lacking_; }

 private:
  task::Task<void> copy_all();
  task::Task<bool> copy_region(size_t region);
  uint64_t hole_rows(RowSpan rows) const;
  task::Task<uint64_t> copy_rows(RowSpan rows);
  task::Task<bool> make_rows(RowSpan rows);
  task::Task<bool> zero_rows(RowSpan rows);
  task::Task<void> copy_to(size_t leg, Request request, MutableBytes content,
                           ParityOutcome& outcome, Join& join);
  task::Task<Result<void>> finish_copying();
  task::Task<Result<void>> make_good();

  const ParityContext& context_;
  ParityLegs& legs_;
  ParityEpoch& epoch_;
  ParityLog& log_;
  ParityRows& rows_;
  Pace& pace_;
  RegionSet lacking_;
  size_t copied_region_ = 0;
  bool copy_again_ = false;  // regions were added meanwhile
  bool runs_ = false;
};

}  // namespace cairn::drive
