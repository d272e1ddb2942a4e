// SPDX-License-Identifier: Apache-2.0
// Blocks: which are free, where the next page goes, what is still valid, how worn each one is.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/rng.h"
#include "model/flash/geometry.h"
#include "model/flash/pool.h"
#include "model/flash/quirks.h"
#include "model/flash/zeroed.h"

namespace cairn::flash {

struct Block {
  uint32_t written;  // pages programmed or promised, from the front
  uint32_t invalid;  // of those
  uint32_t erases;
  uint32_t programs;  // under way, except the collector's
  uint32_t reads;     // under way, except the collector's
  uint32_t pins;      // pages a power cut would bring back: the block cannot be erased
  uint8_t stream;
  bool mapping;     // holds translation pages
  bool collecting;  // chosen as a victim
};

enum class Frontier : uint8_t { kData, kTranslation, kCollector };

// Numbers blocks over all planes, as Geometry does.
class Blocks {
 public:
  Blocks(const Parameters& parameters, const Geometry& geometry);

  Block& operator[](uint32_t block) { return blocks_[block]; }
  const Block& operator[](uint32_t block) const { return blocks_[block]; }
  bool valid(uint32_t ppa) const {
    return (invalid_bits_[word_of(ppa)] >> (geometry_.page_of(ppa) % 64) & 1) == 0;
  }
  uint32_t lpa_of(uint32_t ppa) const { return owner_plus_one_[ppa] - 1; }
  void set_owner(uint32_t ppa, uint32_t lpa) { owner_plus_one_[ppa] = lpa + 1; }

  size_t free_blocks(uint32_t plane) const {
    const Plane& p = planes_[plane];
    return geometry_.blocks() - p.fresh + p.pool.size();
  }
  uint64_t valid_pages(uint32_t plane) const { return planes_[plane].valid; }

  // The next page of a frontier. `filled` is true when that was the frontier's last page and a new
  // block was opened. There must be a free block then.
  uint32_t allocate(uint32_t plane, uint32_t stream, Frontier frontier, bool& filled);
  void invalidate(uint32_t ppa);
  // The page is valid again; its block was not erased meanwhile.
  void revalidate(uint32_t ppa);
  // Closes a block whose pages 0..valid-1 were just given owners; the others become invalid.
  // Returns the first page. Preconditioning only.
  uint32_t fill_block(uint32_t plane, uint32_t stream, uint32_t valid);
  // The block is free again.
  void erased(uint32_t block);

  // Power failed: nobody uses any block, and no victim is under way.
  void settle();

  bool is_frontier(uint32_t block) const;
  // Neither a frontier, nor being programmed, nor a victim already.
  bool safe_victim(uint32_t block) const {
    const Block& b = blocks_[block];
    return b.programs == 0 && !b.collecting && !is_frontier(block);
  }
  // Victims under way in a plane, by block.
  std::vector<uint32_t>& ongoing(uint32_t plane) { return planes_[plane].ongoing; }
  // Blocks of a plane in the order in which they were opened, oldest first.
  std::deque<uint32_t>& history(uint32_t plane) { return planes_[plane].history; }

  // First block of a plane with the fewest, and with the most erases.
  uint32_t coldest(uint32_t plane) const;
  uint32_t hottest(uint32_t plane) const;
  size_t table_bytes() const {
    return blocks_.bytes() + invalid_bits_.bytes() + owner_plus_one_.bytes();
  }

 private:
  struct Pooled {
    uint64_t erases;
    uint64_t order;
    uint32_t block;
    friend bool operator<(const Pooled& a, const Pooled& b) {
      // Reversed: the standard heap has its largest in front.
      return a.erases != b.erases ? a.erases > b.erases : a.order > b.order;
    }
  };
  struct Plane {
    uint32_t fresh = 0;        // blocks below were opened at least once
    std::vector<Pooled> pool;  // erased ones, a heap
    std::vector<uint32_t> frontiers;
    std::vector<uint32_t> ongoing;
    std::deque<uint32_t> history;
    uint64_t valid = 0;
  };

  size_t word_of(uint32_t ppa) const {
    return size_t{geometry_.block_of(ppa)} * words_ + geometry_.page_of(ppa) / 64;
  }
  uint32_t open(uint32_t plane, uint32_t stream, bool mapping);

  const Geometry& geometry_;
  bool by_wear_;
  bool keep_history_;
  uint32_t words_;
  Zeroed<Block> blocks_;
  Zeroed<uint64_t> invalid_bits_;
  Zeroed<uint32_t> owner_plus_one_;
  std::vector<Plane> planes_;
  uint64_t order_ = 0;
};

// How many free blocks a plane keeps, and for whom.
struct Reserve {
  Reserve(const Parameters& parameters, const Quirks& quirks);

  uint32_t start = 0;            // with fewer a collection starts
  uint32_t urgent = 0;           // with fewer the collector goes before users
  uint32_t stop = 0;             // with fewer users' writes wait
  uint32_t victims_at_once = 0;  // in a plane

  bool writes_must_wait(const Blocks& blocks, uint32_t plane) const {
    return blocks.free_blocks(plane) < stop;
  }
};

}  // namespace cairn::flash
