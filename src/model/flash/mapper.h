// SPDX-License-Identifier: Apache-2.0
// From logical to flash pages, and where new pages go.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/flash/scheduler.h"
#include "model/flash/shared.h"
#include "model/flash/translation_pages.h"

namespace cairn::flash {

// Takes reads whose data the collector had in the controller's memory.
class ReadSink {
 public:
  virtual void read_done(uint32_t transaction) = 0;

 protected:
  ~ReadSink() = default;
};

// A transaction waits here for its mapping entry, for the collector that moves its page, or, if it
// is a program, for free blocks. Then it has its flash page and goes to the scheduler.
class Mapper {
 public:
  Mapper(Shared& shared, TranslationPages& translation, Scheduler& scheduler, SpaceSink& space,
         ReadSink& reads);

  // Transactions of users and of the data cache, as one batch.
  void dispatch(Fifo transactions);
  // A translation page was read: those who waited for its entries go on.
  void translation_page_read(uint32_t page);

  // The program of a user's page has ended.
  void programmed(uint32_t plane) { --plane_load_[plane]; }
  // Sectors of a page were trimmed.
  void forget_sectors(uint32_t lpa, uint64_t sectors);
  // A page without sectors needs no place on flash. While the collector moves it, it keeps its
  // place.
  void drop_if_empty(uint32_t lpa);

  // The collector has moved the page: those who met it go on.
  void release_held(uint32_t lpa);
  // A block of the plane was erased: programs that waited for free blocks go on.
  void retry_overfull(uint32_t plane);
  bool has_overfull(uint32_t plane) const { return !overfull_[plane].empty(); }

  // Undoes a change of a page's place or sectors. Adds to `lost` the sectors whose newest contents
  // are gone.
  void undo(const Undo& change, std::map<uint32_t, uint64_t>& lost);
  // Power failed: nobody waits.
  void clear();

 private:
  bool query(uint32_t transaction);
  void count_query(Kind kind, bool hit);
  bool translate(uint32_t transaction);
  void translate_read(uint32_t transaction);
  void map_unwritten(uint32_t transaction, uint32_t plane);
  void place(uint32_t program);
  void read_rest(uint32_t program, uint64_t sectors);
  void submit(uint32_t transaction);
  uint32_t choose_plane(uint32_t lpa, uint32_t stream);
  void hold_back(uint32_t transaction);
  Fifo& overfull(uint32_t plane) { return overfull_[parameters_.dynamic_spread ? 0 : plane]; }

  Shared& shared_;
  const Parameters& parameters_;
  const Quirks quirks_;
  const Geometry& geometry_;
  const std::vector<Domain>& domains_;
  const Reserve& reserve_;
  Counters& counters_;
  Pool<Transaction>& transactions_;
  PageTable& pages_;
  Blocks& blocks_;
  PendingPrograms& pending_;
  UndoLog& undo_log_;
  TranslationPages& translation_;
  Scheduler& scheduler_;
  SpaceSink& space_;
  ReadSink& reads_;

  // By plane: programs that wait for free blocks. Those that may go anywhere wait in one list.
  std::vector<Fifo> overfull_;
  Fifo held_;  // transactions on pages that are being moved
  uint32_t plane_turn_ = 0;
  std::vector<uint32_t> plane_load_;  // programs queued, for the dynamic spread
};

}  // namespace cairn::flash
