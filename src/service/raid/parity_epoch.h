// SPDX-License-Identifier: Apache-2.0
// ParityEpoch: the state that parity keeps on its legs beside the log. The number of the log's
// epoch, and the regions that legs which are not good may lack.
#pragma once

#include <cstdint>

#include "base/buffer.h"
#include "base/error.h"
#include "service/common/region_set.h"
#include "service/raid/parity_format.h"
#include "service/raid/parity_layout.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_shape.h"
#include "task/task.h"

namespace cairn::drive {

class ParityEpoch {
 public:
  // `found` is in force on the legs. `block` has room for it.
  ParityEpoch(const ParityContext& context, ParityLegs& legs, ParityState found, Buffer block);

  uint64_t number() const { return epoch_; }
  const RegionSet& missed() const { return missed_; }

  // Rows change in this epoch.
  void note_change(RowSpan rows);
  // A good leg is lost: what was changed in this epoch may be nowhere but in its caches.
  void miss_changes() { missed_.add(touched_); }
  void miss_all() { missed_.add_all(); }
  // All legs have all data.
  void miss_nothing() { missed_ = RegionSet(missed_.size()); }

  // Done when the state is durable on every good leg. A failure leaves the one before in force.
  task::Task<Result<void>> save();
  // The same with the next number: entries of the log until now are of the past.
  task::Task<Result<void>> end();
  // One that some legs lack was never in force. All get it, before the next takes the place of the
  // one before it.
  task::Task<Result<void>> level();
  // Whoever had the legs may have gone on until they were claimed: changed_meanwhile().
  task::Task<Result<void>> check();

 private:
  task::Task<Result<void>> save(uint64_t epoch);
  task::Task<Result<void>> write(uint64_t epoch, uint64_t sequence);

  const ParityContext& context_;
  ParityLegs& legs_;
  Buffer block_;
  uint64_t epoch_;
  uint64_t sequence_;  // of the newest state
  RegionSet touched_;  // changed in this epoch
  RegionSet missed_;   // that legs which are not good may lack
};

}  // namespace cairn::drive
