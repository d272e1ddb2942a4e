// SPDX-License-Identifier: Apache-2.0
// Copies: extents that several volumes have together are copied to a place of their own before one
// of them is written. Whoever has the volume open copies.
//
// The calls are those of ArbiterLink (volume/arbiter_link.h).
#pragma once

#include <cstdint>
#include <vector>

#include "arbiter/own_counters.h"
#include "arbiter/pool_store.h"
#include "arbiter/sessions.h"
#include "task/task.h"
#include "volume/arbiter_link.h"

namespace cairn::arbiter {

class Copies {
 public:
  // All outlive it. Places are chosen by the counters, which learn what came of that.
  Copies(PoolStore& store, Sessions& sessions, OwnCounters& own_counters)
      : store_(store), pool_(store.pool()), sessions_(sessions), own_counters_(own_counters) {}

  task::Task<Result<std::vector<volume::CopyPlace>>> begin(volume::Session session,
                                                           std::vector<uint32_t> extents);
  task::Task<Result<std::vector<volume::Mapping>>> end(volume::Session session,
                                                       std::vector<volume::CopyEnd> copies);

 private:
  PoolStore& store_;
  Pool& pool_;
  Sessions& sessions_;
  OwnCounters& own_counters_;
};

}  // namespace cairn::arbiter
