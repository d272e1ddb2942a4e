// SPDX-License-Identifier: Apache-2.0
// The pages in the drive's DRAM, in order of use.
#pragma once

#include <cstdint>

#include "model/flash/page_table.h"
#include "model/flash/parameters.h"

namespace cairn::flash {

class DataCache {
 public:
  enum class Status : uint8_t { kClean, kDirty, kWritingBack };

  struct Slot {
    uint32_t next = kNone;  // towards older
    uint32_t newer = kNone;
    uint32_t lpa = 0;
    Status status = Status::kClean;
    uint64_t sectors = 0;        // which are here
    uint64_t dirty_sectors = 0;  // of those, which flash does not have
    Nanos stamp = 0;             // orders the data given to the drive
  };

  DataCache(PageTable& pages, size_t capacity) : pages_(pages), capacity_(capacity) {}

  bool full() const { return used_ >= capacity_; }
  size_t used() const { return used_; }
  size_t capacity() const { return capacity_; }
  size_t dirty() const { return dirty_; }
  uint32_t find(uint32_t lpa) const { return pages_[lpa].cache_slot_plus_one - 1; }
  const Slot& operator[](uint32_t slot) const { return slots_[slot]; }

  void touch(uint32_t slot);
  void insert(uint32_t lpa, uint64_t sectors, Nanos stamp, Status status);
  // Adds sectors of newer or other data; the slot is dirty afterwards and the most recently used.
  void update(uint32_t slot, uint64_t sectors, Nanos stamp);
  // Adds sectors that flash has; the slot stays as dirty as it is.
  void add_clean(uint32_t slot, uint64_t sectors) { slots_[slot].sectors |= sectors; }
  // What is written back or clean has no dirty sectors.
  void set_status(uint32_t slot, Status status);
  // Nobody needs these sectors any more. A slot without sectors is removed.
  void forget(uint32_t slot, uint64_t sectors);
  void remove(uint32_t slot);
  void clear();
  // Takes out the least recently used page; the cache must not be empty.
  Slot evict();
  // Calls visit(slot) for each dirty page, which may change its status.
  template <class F>
  void for_each_dirty(F&& visit) {
    size_t left = dirty_;
    for (uint32_t slot = newest_; left > 0; slot = slots_[slot].next) {
      if (slots_[slot].status != Status::kDirty) continue;
      --left;
      visit(slot);
    }
  }
  // While some page is dirty, takes out the least recently used one. False when what was taken out
  // is not dirty: whoever wanted room has to come again.
  bool evict_dirty(Slot& evicted);

 private:
  void unlink(uint32_t slot);
  void link_newest(uint32_t slot);

  PageTable& pages_;
  Pool<Slot> slots_;
  size_t capacity_;
  size_t used_ = 0;
  size_t dirty_ = 0;
  uint32_t newest_ = kNone;
  uint32_t oldest_ = kNone;
};

}  // namespace cairn::flash
