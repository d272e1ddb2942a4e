// SPDX-License-Identifier: Apache-2.0
// Extents: those of volumes get legs and lose them, as whoever has the volume open asks.
//
// The calls are those of ArbiterLink (volume/arbiter_link.h).
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "arbiter/own_counters.h"
#include "arbiter/pool_store.h"
#include "arbiter/sessions.h"
#include "task/task.h"
#include "volume/arbiter_link.h"

namespace cairn::arbiter {

// What clients are told of extents of a volume, which has them.
std::vector<volume::Mapping> mappings_of(const Pool& pool, const Volume& volume,
                                         const std::vector<uint32_t>& extents);

class Extents {
 public:
  // All outlive it. The counters learn where extents went.
  Extents(PoolStore& store, Sessions& sessions, OwnCounters& own_counters)
      : store_(store), pool_(store.pool()), sessions_(sessions), own_counters_(own_counters) {}

  task::Task<Result<std::vector<volume::Mapping>>> table(volume::Session session, uint32_t first);
  task::Task<Result<std::vector<volume::Mapping>>> allocate(volume::Session session,
                                                            std::vector<uint32_t> extents);
  task::Task<Result<void>> release(volume::Session session, std::vector<uint32_t> extents);
  task::Task<Result<std::vector<volume::Mapping>>> report(volume::Session session,
                                                          std::vector<volume::LegReport> legs);
  task::Task<Result<volume::Mapping>> relocate(volume::Session session, volume::Relocation what);

  // Commits that changed the map, and extents given by them.
  struct Counters {
    uint64_t allocating_commits = 0;
    uint64_t extents_allocated = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Waiting;  // an allocation that the next commit may take along

  task::Task<Result<void>> allocate_waiting();
  Result<void> plan_allocations(Volume& volume, const std::set<uint32_t>& extents,
                                std::vector<Change>& changes);

  PoolStore& store_;
  Pool& pool_;
  Sessions& sessions_;
  OwnCounters& own_counters_;
  std::deque<Waiting*> waiting_;
  Counters counters_;
};

}  // namespace cairn::arbiter
