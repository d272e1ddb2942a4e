// SPDX-License-Identifier: Apache-2.0
// PathSet: the ways of a drive to its namespace, and which of them the next command takes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fabric/host/lane.h"
#include "fabric/host/path.h"
#include "task/task.h"

namespace cairn::fabric {

// Takes turns among the best: the lowest rank that one of `count` has, in turn among equals.
class PathTurns {
 public:
  // `rank_of(index)` is a Path::Rank. None: all are unusable.
  template <class RankOf>
  std::optional<size_t> pick(size_t count, const RankOf& rank_of) {
    std::optional<size_t> best;
    Path::Rank best_rank = Path::Rank::kUnusable;
    for (size_t i = 0; i < count; ++i) {
      const size_t index = (next_ + i) % count;
      const Path::Rank rank = rank_of(index);
      if (rank >= best_rank) continue;
      best = index;
      best_rank = rank;
      if (rank == Path::Rank::kOptimized) break;
    }
    if (best) next_ = *best + 1;
    return best;
  }

 private:
  size_t next_ = 0;
};

// On one core. Closed before it is destroyed.
class PathSet {
 public:
  // Before start().
  void add(std::unique_ptr<Path> path) { paths_.push_back(std::move(path)); }
  void start();
  task::Task<void> close();

  std::span<const std::unique_ptr<Path>> all() const { return paths_; }
  size_t size() const { return paths_.size(); }

  // Null: none is usable now.
  Path* pick();
  bool has_connected() const;
  // One that is connected and not refused, other than this.
  bool has_besides(const Path& path) const;
  // None will ever be usable again: nobody waits for anything then.
  bool is_stopped() const;
  // Why none was usable for too long. A target that answers and lets nobody in is not gone.
  Error none_usable() const;
  // Of those that are connected, as they are now.
  std::vector<HostLane> lanes() const;

 private:
  std::vector<std::unique_ptr<Path>> paths_;
  PathTurns turns_;
};

}  // namespace cairn::fabric
