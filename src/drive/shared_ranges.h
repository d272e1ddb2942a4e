// SPDX-License-Identifier: Apache-2.0
// SharedRanges: the Ranges of one medium on every core, for what must be alone on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "drive/ranges.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::drive {

// Ordinary requests hold their blocks on their own core, which costs no message. Whoever must be
// alone holds them on each core in turn, lowest first: two who do the same meet at the first core
// and cannot wait for each other, and an ordinary holder waits for nobody while it holds.
//
// Each element is touched by its own core. Outlives every drive on the medium.
class SharedRanges {
 public:
  explicit SharedRanges(uint32_t cores);

  Ranges& on(CoreId core) { return *cores_[core.value()]; }

  // Blocks held alone, on every core. Released before destruction.
  class Alone {
   public:
    Alone(SharedRanges& ranges, uint64_t first, uint64_t count)
        : ranges_(ranges), first_(first), count_(count), holds_(ranges.cores_.size()) {}
    // Done when every core's earlier requests on these blocks have ended.
    task::Task<void> enter(env::Env& env);
    task::Task<void> leave(env::Env& env);

   private:
    SharedRanges& ranges_;
    uint64_t first_;
    uint64_t count_;
    std::vector<std::optional<Ranges::Hold>> holds_;  // by core
  };

 private:
  std::vector<std::unique_ptr<Ranges>> cores_;
};

}  // namespace cairn::drive
