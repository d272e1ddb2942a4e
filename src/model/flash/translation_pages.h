// SPDX-License-Identifier: Apache-2.0
// The mapping table on flash: translation pages, and their way into the mapping cache and back.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/scheduler.h"
#include "model/flash/shared.h"

namespace cairn::flash {

// Told when a block has no page left for its frontier: its plane may need a collection.
class SpaceSink {
 public:
  virtual void block_filled(uint32_t plane) = 0;

 protected:
  ~SpaceSink() = default;
};

class TranslationPages {
 public:
  // Requests for one mapping entry that is on its way.
  struct Waiter {
    uint32_t next = kNone;
    uint32_t lpa = 0;
    Fifo reads;
    Fifo programs;
  };

  TranslationPages(Shared& shared, Scheduler& scheduler, SpaceSink& space);

  // A drive leaves the factory with its (empty) mapping table on flash.
  void store_empty_table();

  // The translation page of a logical page.
  uint32_t of(uint32_t lpa, uint32_t stream) const {
    const Domain& domain = domains_[stream];
    return static_cast<uint32_t>(domain.first_translation_page +
                                 (lpa - domain.first_lpa) / entries_per_page_);
  }

  // --- entries in DRAM ---
  bool has(uint32_t lpa) const { return parameters_.ideal_mapping || cache_.has(lpa); }
  // True when the entry is in DRAM afterwards; otherwise a place is kept for it and a read of its
  // translation page is under way.
  bool bring(uint32_t lpa, uint32_t stream);
  // The transaction waits for the entry of its page, which bring() did not find.
  void wait(uint32_t transaction);
  // The entry was used, if it is there or a place is kept for it.
  void touch(uint32_t lpa);
  // The same, unless it is on its way.
  void touch_if_here(uint32_t lpa);
  // The entry was changed, if it is there.
  void mark_dirty(uint32_t lpa);
  // The collector moves the page, and knows its entry: it is in DRAM afterwards, and was used.
  void keep_for_move(uint32_t lpa, uint32_t stream);
  // Preconditioning only.
  void warm(uint32_t lpa, uint32_t stream) {
    if (cache_.find(lpa) != kNone || cache_.full()) return;
    cache_.insert(lpa, of(lpa, stream), false);
  }

  // --- pages on flash ---
  // Its flash page plus one by translation page, 0 while it is in DRAM alone.
  const Zeroed<uint32_t>& places() const { return ppa_plus_one_; }
  bool is_at(uint32_t page, uint32_t ppa) const { return ppa_plus_one_[page] == ppa + 1; }
  // Writes the translation page of an entry: every other dirty entry of that page becomes clean
  // with it, and what is not in DRAM is read and merged.
  void write_back(uint32_t lpa, uint32_t stream);
  // Any entry of the page will do, to write it back.
  void write_back_page(uint32_t page);
  // The collector moves the page within its plane: where to. Memory has it until it has landed.
  uint32_t move(uint32_t page, uint32_t from, uint32_t stream);
  // Until its program has ended, memory has the page.
  bool is_departing(uint32_t page) const { return arrivals_[page].departing; }
  void set_departing(uint32_t page) { arrivals_[page].departing = true; }
  void landed(uint32_t page) { arrivals_[page].departing = false; }
  // The page was read: the first of those who waited for its entries; see leave().
  uint32_t arrived(uint32_t page);
  // Takes a waiter out, whose entry is in DRAM from now on; `next` is who follows.
  Waiter leave(uint32_t waiter);

  // --- power ---
  // Undoes a program of a translation page: recovery makes it anew, in DRAM.
  void undo(const Undo& change);
  // What was on its way for the page never arrives.
  void forget_arrival(uint32_t page) { arrivals_[page] = {}; }
  // Nobody waits, and nothing is in DRAM.
  void clear();

  MappingCache& cache() { return cache_; }
  size_t table_bytes() const { return ppa_plus_one_.bytes() + arrivals_.bytes(); }
  size_t pool_bytes() const {
    return waiters_.peak() * sizeof(Waiter) + cache_.used() * sizeof(MappingCache::Slot);
  }

 private:
  // Of a translation page: who waits for it, and whether it is still in memory.
  struct Arrival {
    uint32_t first_plus_one;
    uint32_t last_plus_one;
    bool expected;
    bool departing;
  };
  // A translation page on its way between flash and DRAM.
  struct Transfer {
    uint32_t page;
    uint32_t ppa;
    uint32_t stream;
    uint32_t bytes;
  };

  void make_room();
  void add_to_batch(Kind kind, const Transfer& transfer);
  void read(uint32_t page, uint32_t stream, uint32_t bytes);
  uint32_t allocate(uint32_t page, uint32_t stream);
  // Clears the dirty marks of a page's entries: bytes of it that are clean in DRAM.
  uint32_t clean_entries(uint32_t page, uint64_t first_lpa);

  const Parameters& parameters_;
  const Quirks quirks_;
  const Geometry& geometry_;
  const std::vector<Domain>& domains_;
  Counters& counters_;
  Pool<Transaction>& transactions_;
  Blocks& blocks_;
  UndoLog& undo_log_;
  Scheduler& scheduler_;
  SpaceSink& space_;

  const uint32_t entry_bytes_;
  const uint32_t entries_per_page_;
  MappingCache cache_;
  Zeroed<uint32_t> ppa_plus_one_;  // by translation page
  Zeroed<Arrival> arrivals_;       // by translation page
  Pool<Waiter> waiters_;
};

}  // namespace cairn::flash
