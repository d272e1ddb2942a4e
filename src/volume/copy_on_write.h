// SPDX-License-Identifier: Apache-2.0
// CopyOnWrite: an extent of a volume that a snapshot or a clone has too is copied to a place of its
// own before it is written.
//
// Writers wait, and all for which places are needed are asked for in one call. The copy is complete
// and durable before the arbiter is told that the extent lies there.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/list.h"
#include "drive/ranges.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/arbiter_link.h"
#include "volume/lease.h"
#include "volume/members.h"
#include "volume/ordered_link.h"
#include "volume/table.h"

namespace cairn::volume {

// One core.
class CopyOnWrite {
 public:
  // Whose extents they are.
  class Owner {
   public:
    // Why nothing can be copied any more.
    virtual Result<void> usable() const = 0;
    virtual void note_answer(const Error& error) = 0;
    // Legs of the extent may differ, until they are made equal.
    virtual bool may_differ(uint32_t extent) const = 0;
    virtual task::Task<Result<void>> equalize(uint32_t extent, task::CancelToken token) = 0;
    // Blocks of the extent from `offset` on, by any leg that has all writes.
    virtual task::Task<Result<void>> read_blocks(uint32_t extent, uint64_t offset,
                                                 MutableBytes into, task::CancelToken token) = 0;
    // Drives that this client does not know yet.
    virtual task::Task<Result<void>> meet_members(MapEntry entry, task::CancelToken token) = 0;
    virtual task::Task<Result<void>> flush_one(Member& member, task::CancelToken token) = 0;
    // The extent lies at a place of its own; not `is_own`: its copy was given up.
    virtual void copy_ended(uint32_t extent, bool is_own) = 0;

   protected:
    ~Owner() = default;
  };
  // All of it outlives it.
  struct Parts {
    env::Env& env;
    Owner& owner;
    OrderedLink& link;
    Lease& lease;
    Table& table;
    Members& members;
    drive::Ranges& ranges;    // blocks of the volume
    drive::Ranges& changing;  // extents whose place somebody changes
    task::CancelSource& closing;
    task::Gate& gate;  // of what it does by itself
  };
  CopyOnWrite(Parts parts, uint64_t extent_blocks, Duration retry)
      : parts_(parts), extent_blocks_(extent_blocks), retry_(retry) {}

  // Until the extent is the volume's own. Whoever asks holds nothing of it. kNoSpace; kUnreachable:
  // no drive takes the copy; errors of usable(), or by the token.
  task::Task<Result<void>> unshare(uint32_t extent, task::CancelToken token);
  // Since when copies wait for an arbiter that does not answer; never(): none does.
  Time waiting_since() const { return waiting_since_; }

 private:
  // A write that waits until its extent is the volume's own.
  struct Waiter : ListHook<> {
    uint32_t extent = 0;
    Result<void> result;
    task::Event done;
  };
  void answer(uint32_t extent, const Result<void>& result);
  std::vector<uint32_t> next_copies();
  void place_copies();
  task::Task<void> place_some();
  task::Task<Result<std::vector<CopyPlace>>> ask_for_places(std::vector<uint32_t> extents);
  task::Task<Result<std::vector<CopyPlace>>> ask_one_by_one(std::vector<uint32_t> extents);
  task::Task<void> copy_shared(uint32_t extent, Result<CopyPlace> place,
                               std::unique_ptr<drive::Ranges::Hold> changing);
  task::Task<Result<void>> copy_out(uint32_t extent, MapEntry target);
  task::Task<Result<void>> fill_copy(CopyEnd& end);
  task::Task<Result<void>> write_to_copy(Leg leg, uint64_t offset, MutableBytes bytes);
  task::Task<Result<bool>> move_to_copy(CopyEnd end);

  const Parts parts_;
  const uint64_t extent_blocks_;
  const Duration retry_;
  List<Waiter> waiters_;
  std::set<uint32_t> copying_;  // extents that are being copied
  bool is_placing_ = false;
  Time waiting_since_ = Time::never();
};

}  // namespace cairn::volume
