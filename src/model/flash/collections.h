// SPDX-License-Identifier: Apache-2.0
// Victim blocks on their way to the free pool, by chip.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "model/flash/geometry.h"
#include "model/flash/pool.h"
#include "model/flash/transaction.h"

namespace cairn::flash {

// A collection stands in its chip's line from when it starts, or has to wait for users of its
// block, until its block is erased.
class Collections {
 public:
  explicit Collections(const Geometry& geometry) : geometry_(geometry), chips_(geometry.chips()) {}

  uint32_t take() { return pool_.take(); }
  void give_back(uint32_t collection) { pool_.give_back(collection); }
  Collection& operator[](uint32_t collection) { return pool_[collection]; }
  const Collection& operator[](uint32_t collection) const { return pool_[collection]; }

  void stand_in_line(uint32_t collection) { chip_of(collection).line.push(pool_, collection); }
  // Its pages may be read from now on, and its block will be erased.
  void start(uint32_t collection) {
    Chip& chip = chip_of(collection);
    chip.reads += pool_[collection].reads_left;
    ++chip.erases;
  }
  // The collection in the chip's line that waits for users of `block`, or kNone.
  uint32_t postponed(uint32_t chip, uint32_t block) const {
    for (uint32_t i = chips_[chip].line.head; i != kNone; i = pool_[i].next) {
      if (pool_[i].block == block && pool_[i].postponed) return i;
    }
    return kNone;
  }

  // First in the chip's line; follow `next`.
  uint32_t first(uint32_t chip) const { return chips_[chip].line.head; }
  // Pages that victims of the chip still have to read, and victims that will be erased.
  uint32_t reads(uint32_t chip) const { return chips_[chip].reads; }
  uint32_t erases(uint32_t chip) const { return chips_[chip].erases; }

  // The first in line that has pages to read on these planes of the chip.
  uint32_t first_reading(uint32_t chip, uint64_t planes) const {
    if (chips_[chip].reads == 0) return kNone;
    const uint32_t first_plane = chip * geometry_.planes_per_chip();
    for (uint32_t i = chips_[chip].line.head; i != kNone; i = pool_[i].next) {
      const Collection& collection = pool_[i];
      if (collection.reads_left == 0) continue;
      if ((planes >> (collection.plane - first_plane) & 1) != 0) return i;
    }
    return kNone;
  }
  // The lowest page of the victim that is not read yet; there is one.
  uint32_t first_unread(uint32_t index) {
    Collection& collection = pool_[index];
    uint32_t word = collection.next_page / 64;
    while (collection.unread[word] == 0) ++word;
    const uint32_t page =
        word * 64 + static_cast<uint32_t>(std::countr_zero(collection.unread[word]));
    collection.next_page = page;
    return page;
  }
  // The page is being read.
  void take_page(uint32_t index, uint32_t page) {
    Collection& collection = pool_[index];
    collection.unread[page / 64] &= ~(uint64_t{1} << (page % 64));
    --collection.reads_left;
    --chip_of(index).reads;
  }
  // The block is being erased. `previous` stands before it in line, or is kNone.
  void leave_line(uint32_t chip, uint32_t previous, uint32_t collection) {
    Fifo& line = chips_[chip].line;
    const uint32_t next = pool_[collection].next;
    (previous == kNone ? line.head : pool_[previous].next) = next;
    if (next == kNone) line.tail = previous;
    --chips_[chip].erases;
  }

  size_t pool_bytes() const { return pool_.peak() * sizeof(Collection); }
  // Power failed: no victim is under way.
  void clear() {
    pool_.clear();
    chips_.assign(chips_.size(), Chip{});
  }

 private:
  struct Chip {
    Fifo line;
    uint32_t reads = 0;
    uint32_t erases = 0;
  };

  Chip& chip_of(uint32_t collection) {
    return chips_[geometry_.chip_of_plane(pool_[collection].plane)];
  }

  const Geometry& geometry_;
  Pool<Collection> pool_;
  std::vector<Chip> chips_;
};

}  // namespace cairn::flash
