// SPDX-License-Identifier: Apache-2.0
// The mapping from logical to flash pages, and the part of it that is cached in DRAM.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/parameters.h"
#include "model/flash/pool.h"
#include "model/flash/zeroed.h"

namespace cairn::flash {

// Everything about one logical page in one place: a request touches it once. Members that are an
// index plus one mean "none" when zero, so that an untouched table is an empty one.
struct PageRecord {
  uint32_t ppa_plus_one;
  uint32_t mapping_slot_plus_one;
  uint32_t cache_slot_plus_one;
  // The period of the write filter in which the page was last written; the top bit says that the
  // collector is moving the page.
  uint32_t written_in_and_locked;
  uint64_t written;  // one bit per sector

  static constexpr uint32_t kLocked = 1U << 31;

  uint32_t ppa() const { return ppa_plus_one - 1; }  // kNone when unmapped
  bool mapped() const { return ppa_plus_one != 0; }
  void map_to(uint32_t ppa) { ppa_plus_one = ppa + 1; }
  bool locked() const { return (written_in_and_locked & kLocked) != 0; }
  void lock() { written_in_and_locked |= kLocked; }
  void unlock() { written_in_and_locked &= ~kLocked; }
  uint32_t written_in() const { return written_in_and_locked & ~kLocked; }
  void set_written_in(uint32_t period) {
    written_in_and_locked = (written_in_and_locked & kLocked) | period;
  }
};
static_assert(sizeof(PageRecord) == 24);

using PageTable = Zeroed<PageRecord>;

// Bytes of a mapping entry in a translation page, and in DRAM, where it has the logical page too.
uint32_t stored_entry_bytes(const Parameters& parameters);
uint32_t cached_entry_bytes(const Parameters& parameters);
uint32_t entries_per_translation_page(const Parameters& parameters);

// Which mapping entries are in DRAM, in order of use. Entries of one translation page are linked,
// because they are written back together.
class MappingCache {
 public:
  struct Slot {
    uint32_t next = kNone;  // free list, or order of use towards older
    uint32_t newer = kNone;
    uint32_t sibling = kNone;
    uint32_t elder = kNone;
    uint32_t lpa = 0;
    uint32_t translation_page = 0;
    uint32_t waiter = kNone;  // while the entry is on its way from flash
    bool dirty = false;
    bool waiting = false;
  };

  MappingCache(PageTable& pages, size_t capacity, size_t translation_pages)
      : pages_(pages), capacity_(capacity), first_of_page_(translation_pages) {}

  bool full() const { return used_ >= capacity_; }
  size_t used() const { return used_; }
  size_t capacity() const { return capacity_; }

  // kNone when `lpa` has no slot.
  uint32_t find(uint32_t lpa) const { return pages_[lpa].mapping_slot_plus_one - 1; }
  // True when the entry itself is there, not only a place kept for it.
  bool has(uint32_t lpa) const {
    const uint32_t slot = find(lpa);
    return slot != kNone && !slots_[slot].waiting;
  }
  Slot& operator[](uint32_t slot) { return slots_[slot]; }

  uint32_t insert(uint32_t lpa, uint32_t translation_page, bool waiting);
  void touch(uint32_t slot);
  // The least recently used entry that is not on its way, taken out; kNone when there is none.
  // `dirty` tells whether it must be written back.
  uint32_t evict(bool& dirty);
  void clear();
  // First slot of the entries of a translation page; follow `sibling`.
  uint32_t first_of(uint32_t translation_page) const {
    return first_of_page_[translation_page] - 1;
  }

 private:
  void unlink(uint32_t slot);
  void link_newest(uint32_t slot);
  void remove(uint32_t slot);

  PageTable& pages_;
  Pool<Slot> slots_;
  size_t capacity_;
  size_t used_ = 0;
  uint32_t newest_ = kNone;
  uint32_t oldest_ = kNone;
  Zeroed<uint32_t> first_of_page_;  // plus one
};

}  // namespace cairn::flash
