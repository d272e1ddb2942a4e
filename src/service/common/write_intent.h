// SPDX-License-Identifier: Apache-2.0
// WriteIntent: regions of a drive that may be half written after a crash, known before they are.
//
// Before a region is changed its mark is durable; many changes share one write of the marks. A
// region that nobody changed for a while is forgotten by the owner, once all of it is durable.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/region_set.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

struct Regions {
  uint64_t first = 0;
  uint64_t count = 0;
};

class WriteIntent {
 public:
  // Puts marks on a drive. On failure the drive has these or those before.
  class Keeper {
   public:
    virtual task::Task<Result<void>> save_marks(const RegionSet& marks, bool durable) = 0;
    // Whether marks may go at all, asked when it is their turn to.
    virtual bool may_forget() const { return true; }

   protected:
    ~Keeper() = default;
  };

  // `marked` is what the drive has.
  WriteIntent(Keeper& keeper, const RegionSet& marked);

  // Before a change; leave() after it, whatever came of either. Done when the marks are durable.
  task::Task<Result<void>> enter(Regions regions);
  // The same at once, for regions that are all marked. False: nothing was done.
  bool enter_marked(Regions regions);
  void leave(Regions regions);

  // Marks all regions, durably. On failure the next write of marks has them all.
  task::Task<Result<void>> mark_all();
  // Puts the marks there are on the drive again, durably: a part of it may lack them.
  task::Task<Result<void>> save_again();

  // Marked regions that nobody has changed since the last call, and nobody changes now.
  RegionSet idle();
  // The same, be it that they were changed since.
  RegionSet unchanging();
  // Those of `regions` that nobody changed since idle() or unchanging() lose their marks. The
  // caller made them durable in between. Marks that stay on the drive, because of a failure or a
  // crash unless `durable`, cost a look at their regions.
  task::Task<void> forget(RegionSet regions, bool durable = false);

  size_t marked() const { return marked_.count(); }
  const RegionSet& marks() const { return marked_; }

 private:
  bool are_marked(Regions regions) const;
  void note_change(Regions regions);
  task::Task<Result<void>> save(bool durable);

  Keeper& keeper_;
  RegionSet wanted_;                // to be on the drive
  RegionSet marked_;                // on the drive, durably
  RegionSet touched_;               // since idle()
  std::vector<uint32_t> changing_;  // by region: changes in flight
  task::Semaphore turn_{1};         // of writing
};

}  // namespace cairn::drive
