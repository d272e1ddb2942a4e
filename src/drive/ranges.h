// SPDX-License-Identifier: Apache-2.0
// Ranges: which blocks are being changed, so that a compare-and-write has its blocks to itself.
#pragma once

#include <cstdint>

#include "base/list.h"
#include "task/operation.h"

namespace cairn::drive {

// Shared holders may overlap each other, an exclusive one overlaps nobody. First come, first
// served among those that overlap; the others pass. Core-local, allocates nothing. A medium that
// several cores use has one on each (SharedRanges).
class Ranges {
 public:
  struct ActiveTag;
  struct WaitingTag;
  enum class Mode : uint8_t { kShared, kExclusive };

  // `co_await hold` enters; leave() (or destruction) ends it.
  class Hold final : public task::Operation<void>,
                     public ListHook<ActiveTag>,
                     public ListHook<WaitingTag> {
   public:
    Hold(Ranges& ranges, Mode mode, uint64_t first, uint64_t count, task::CancelToken token = {})
        : Operation(token), ranges_(ranges), mode_(mode), first_(first), count_(count) {}
    ~Hold() { leave(); }
    void leave();

   private:
    friend class Ranges;
    bool conflicts(const Hold& other) const {
      const bool overlap = first_ < other.first_ + other.count_ && other.first_ < first_ + count_;
      return overlap && (mode_ == Mode::kExclusive || other.mode_ == Mode::kExclusive);
    }
    void start() override;
    void cancel() override;

    Ranges& ranges_;
    Mode mode_;
    uint64_t first_;
    uint64_t count_;
  };

  // Whether somebody is alone, or waits to be.
  bool has_exclusive() const { return exclusive_ > 0; }

 private:
  bool must_wait(const Hold& hold);
  void serve();

  List<Hold, ActiveTag> active_;
  List<Hold, WaitingTag> waiting_;
  uint32_t exclusive_ = 0;  // holders and waiters that want to be alone: usually none
};

}  // namespace cairn::drive
