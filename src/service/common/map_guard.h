// SPDX-License-Identifier: Apache-2.0
// MapGuard: keeps a service from using a map that is ahead of the medium.
//
// A map in memory points to data that was written and is perhaps not flushed. When the drive below
// loses that (a flush fails, or its box comes back after a power loss), the map points to units
// that hold something else. So the map is dropped, and made anew from the journal, which never
// points to data that is not durable: blocks are as after a crash of the service itself. Whatever
// ran meanwhile fails; the next flush says that something was lost, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "drive/drive.h"
#include "drive/losses.h"
#include "env/env.h"
#include "service/common/journal.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

// Whose map it is.
class MapOwner {
 public:
  virtual Journal& map_journal() = 0;
  // Drops the map and replays the journal (Journal::reload). No request runs.
  virtual task::Task<Result<void>> reload_map() = 0;

 protected:
  ~MapOwner() = default;
};

class MapGuard {
 public:
  // The drives below and the owner outlive it.
  MapGuard(env::Env& env, MapOwner& owner, task::Gate& gate)
      : owner_(owner), gate_(gate), opening_(env.rng().next() | 1) {}
  void add(Drive& below) { below_.push_back({.drive = &below}); }
  // The journal is read, or made, from here on.
  void begin() { look(); }

  // Whether a drive below may have lost something since the map was read, or since forgive().
  bool has_changed() const;
  // Nothing in the map depends on it.
  void forgive() { look(); }

  // Whether the map can be used, as far as is known now. Only with a journal.
  bool is_sound();
  // Waits until it can be. Errors of the drives below, kCorrupt, and of the token.
  task::Task<Result<void>> mend(task::CancelToken token);

  // A request that uses the map: not while it is unsound.
  class Use {
   public:
    explicit Use(MapGuard& guard);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    // What the request answers: what was found or done by a map that became unsound does not count.
    Result<void> judge(const Result<void>& done);

   private:
    MapGuard& guard_;
  };
  // What a flush began with, and what it answers.
  uint64_t told() const { return losses_.told(); }
  Result<void> tell(uint64_t told, const Result<void>& done, const task::CancelToken& token) {
    return token.requested() ? done : losses_.tell(told, done);
  }

  // The incarnation of the service: another one too when its blocks are as they were some time
  // before. What the map in memory points to and the journal does not is gone with this process.
  Incarnation mixed(const Incarnation& below) const;
  const Losses& losses() const { return losses_; }
  bool is_lost() const { return is_lost_; }
  std::vector<Concern> concerns() const;

 private:
  struct Below {
    Drive* drive = nullptr;
    Watch watch;
  };
  void look();
  task::Task<void> reload();

  MapOwner& owner_;
  task::Gate& gate_;
  const uint64_t opening_;  // of the map
  std::vector<Below> below_;
  Losses losses_;
  size_t uses_ = 0;
  task::Event unused_;
  bool is_lost_ = false;
  bool is_mending_ = false;
  task::Event mended_;
  Result<void> outcome_;  // of the last attempt
};

}  // namespace cairn::drive
