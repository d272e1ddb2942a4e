// SPDX-License-Identifier: Apache-2.0
// Garbage collection and wear levelling.
#pragma once

#include <cstdint>

#include "model/flash/bus.h"
#include "model/flash/collections.h"
#include "model/flash/flushes.h"
#include "model/flash/mapper.h"
#include "model/flash/scheduler.h"
#include "model/flash/shared.h"
#include "model/flash/translation_pages.h"
#include "model/flash/victims.h"

namespace cairn::flash {

// What a collection uses besides the scheduler: the stations that hold what it moves.
struct CollectorParts {
  Collections& collections;
  Scheduler& scheduler;
  Bus& bus;
  TranslationPages& translation;
  Mapper& mapper;
  Flushes& flushes;
};

// A victim's valid pages are read, each is programmed elsewhere in its plane, the block is erased.
// The scheduler reads the pages out of the collection by itself.
class Collector {
 public:
  Collector(Shared& shared, const CollectorParts& parts);

  // Starts a collection in the plane if it has too few free blocks.
  void check(uint32_t plane);
  // A user of the block is done; a collection may have waited for that.
  void block_released(uint32_t block);

  // What the flash has done for a collection.
  void read_done(uint32_t transaction);
  // The die holds the page that was read, and programs it next. Others wait for the die meanwhile.
  void copy_back(uint32_t die);
  void program_done(uint32_t transaction);
  void erase_done(uint32_t transaction);

  uint32_t rga_choices() const { return victims_.choices(); }

 private:
  void collect(uint32_t block, bool wear);
  void start(uint32_t collection);
  uint32_t move_page(uint32_t read);
  uint32_t place_of_data(const Transaction& read, uint32_t lpa, uint32_t stream);
  void page_moved(uint32_t collection);

  const Parameters& parameters_;
  const Quirks quirks_;
  const Geometry& geometry_;
  const Reserve& reserve_;
  Counters& counters_;
  Pool<Transaction>& transactions_;
  PageTable& pages_;
  Blocks& blocks_;
  UndoLog& undo_log_;
  Collections& collections_;
  Scheduler& scheduler_;
  Bus& bus_;
  TranslationPages& translation_;
  Mapper& mapper_;
  Flushes& flushes_;

  Victims victims_;
};

}  // namespace cairn::flash
