// SPDX-License-Identifier: Apache-2.0
#include "model/flash/translation_pages.h"

#include <algorithm>
#include <bit>

namespace cairn::flash {

namespace {

uint64_t sum_of_translation_pages(const std::vector<Domain>& domains) {
  return domains.back().first_translation_page + domains.back().translation_pages + 1;
}

}  // namespace

TranslationPages::TranslationPages(Shared& shared, Scheduler& scheduler, SpaceSink& space)
    : parameters_(shared.parameters),
      quirks_(shared.quirks),
      geometry_(shared.geometry),
      domains_(shared.domains),
      counters_(shared.counters),
      transactions_(shared.transactions),
      blocks_(shared.blocks),
      undo_log_(shared.undo_log),
      scheduler_(scheduler),
      space_(space),
      entry_bytes_(stored_entry_bytes(parameters_)),
      entries_per_page_(entries_per_translation_page(parameters_)),
      cache_(shared.pages, parameters_.mapping_cache_bytes / cached_entry_bytes(parameters_),
             sum_of_translation_pages(domains_)),
      ppa_plus_one_(sum_of_translation_pages(domains_)),
      arrivals_(sum_of_translation_pages(domains_)) {}

void TranslationPages::store_empty_table() {
  for (uint32_t stream = 0; stream < domains_.size(); ++stream) {
    const Domain& domain = domains_[stream];
    for (uint64_t i = 0; i < domain.translation_pages; ++i) {
      const uint32_t ppa =
          allocate(static_cast<uint32_t>(domain.first_translation_page + i), stream);
      if (quirks_.keeps_first_programs_open()) continue;
      --blocks_[geometry_.block_of(ppa)].programs;
    }
  }
}

bool TranslationPages::bring(uint32_t lpa, uint32_t stream) {
  const uint32_t page = of(lpa, stream);
  const uint32_t kept = cache_.find(lpa);
  if (kept != kNone) return false;  // somebody waits for it already
  const bool on_flash = ppa_plus_one_[page] != 0;
  const bool expected = arrivals_[page].expected;
  const bool in_memory = !expected && arrivals_[page].departing;
  make_room();
  if (!on_flash || in_memory) {
    cache_.insert(lpa, page, false);
    return true;
  }
  const uint32_t slot = cache_.insert(lpa, page, true);
  const uint32_t waiter = waiters_.take();
  waiters_[waiter].lpa = lpa;
  cache_[slot].waiter = waiter;
  Arrival& arrival = arrivals_[page];
  if (arrival.last_plus_one == 0) {
    arrival.first_plus_one = waiter + 1;
  } else {
    waiters_[arrival.last_plus_one - 1].next = waiter;
  }
  arrival.last_plus_one = waiter + 1;
  if (!expected) {
    arrival.expected = true;
    read(page, stream, kSectorBytes);
  }
  return false;
}

void TranslationPages::make_room() {
  if (!cache_.full()) return;
  bool dirty = false;
  const uint32_t evicted = cache_.evict(dirty);
  if (evicted == kNone || !dirty) return;
  write_back(evicted, stream_of(domains_, evicted));
}

void TranslationPages::add_to_batch(Kind kind, const Transfer& transfer) {
  const uint32_t index = transactions_.take();
  Transaction& t = transactions_[index];
  t.kind = kind;
  t.source = Source::kMapping;
  t.stream = static_cast<uint8_t>(transfer.stream);
  t.lpa = transfer.page;
  t.ppa = transfer.ppa;
  t.plane = geometry_.plane_of(transfer.ppa);
  t.page = geometry_.page_of(transfer.ppa);
  t.bytes = transfer.bytes;
  scheduler_.add_to_batch(index);
}

void TranslationPages::read(uint32_t page, uint32_t stream, uint32_t bytes) {
  scheduler_.open_batch();
  const uint32_t ppa = ppa_plus_one_[page] - 1;
  ++blocks_[geometry_.block_of(ppa)].reads;
  ++counters_.mapping_reads_wanted;
  add_to_batch(Kind::kRead, {.page = page, .ppa = ppa, .stream = stream, .bytes = bytes});
  scheduler_.close_batch();
}

void TranslationPages::wait(uint32_t transaction) {
  const Transaction& t = transactions_[transaction];
  Waiter& waiter = waiters_[cache_[cache_.find(t.lpa)].waiter];
  Fifo& queue = t.kind == Kind::kRead ? waiter.reads : waiter.programs;
  queue.push(transactions_, transaction);
}

void TranslationPages::touch(uint32_t lpa) {
  if (parameters_.ideal_mapping) return;
  const uint32_t slot = cache_.find(lpa);
  if (slot != kNone) cache_.touch(slot);
}

void TranslationPages::touch_if_here(uint32_t lpa) {
  if (cache_.has(lpa)) cache_.touch(cache_.find(lpa));
}

void TranslationPages::mark_dirty(uint32_t lpa) {
  if (parameters_.ideal_mapping) return;
  const uint32_t slot = cache_.find(lpa);
  if (slot != kNone) cache_[slot].dirty = true;
}

void TranslationPages::keep_for_move(uint32_t lpa, uint32_t stream) {
  if (parameters_.ideal_mapping) return;
  if (cache_.find(lpa) == kNone) {
    make_room();
    cache_.insert(lpa, of(lpa, stream), false);
  }
  cache_.touch(cache_.find(lpa));
}

uint32_t TranslationPages::clean_entries(uint32_t page, uint64_t first_lpa) {
  uint64_t clean_sectors = 0;
  std::vector<uint32_t> cleaned;
  for (uint32_t slot = cache_.first_of(page); slot != kNone; slot = cache_[slot].sibling) {
    MappingCache::Slot& entry = cache_[slot];
    if (entry.waiting) continue;
    if (entry.dirty) {
      entry.dirty = false;
      if (quirks_.touches_written_back_entries()) cleaned.push_back(entry.lpa);
    } else {
      const uint64_t offset = (entry.lpa - first_lpa) * entry_bytes_ / kSectorBytes;
      clean_sectors |= uint64_t{1} << offset;
    }
  }
  std::ranges::sort(cleaned);
  for (const uint32_t entry : cleaned) cache_.touch(cache_.find(entry));
  return static_cast<uint32_t>(std::popcount(clean_sectors)) * kSectorBytes;
}

void TranslationPages::write_back(uint32_t lpa, uint32_t stream) {
  scheduler_.open_batch();
  const uint32_t page = of(lpa, stream);
  const Domain& domain = domains_[stream];
  const uint64_t first_lpa =
      domain.first_lpa + (page - domain.first_translation_page) * uint64_t{entries_per_page_};
  const uint32_t clean_bytes = clean_entries(page, first_lpa);
  if (ppa_plus_one_[page] != 0) {
    arrivals_[page].expected = true;
    read(page, stream, clean_bytes);
  }
  ++counters_.mapping_writes_wanted;
  const uint32_t ppa = allocate(page, stream);
  undo_log_.add({.kind = Undo::Kind::kTranslation, .lpa = page, .ppa = ppa, .old_ppa = kNone});
  arrivals_[page].departing = true;
  if (!quirks_.drops_mapping_programs()) {
    add_to_batch(Kind::kProgram,
                 {.page = page, .ppa = ppa, .stream = stream, .bytes = parameters_.page_bytes});
  }
  scheduler_.close_batch();
}

void TranslationPages::write_back_page(uint32_t page) {
  uint32_t stream = 0;
  while (page > domains_[stream].first_translation_page + domains_[stream].translation_pages) {
    ++stream;
  }
  const Domain& domain = domains_[stream];
  const uint64_t entry = (page - domain.first_translation_page) * entries_per_page_;
  write_back(static_cast<uint32_t>(domain.first_lpa + entry), stream);
}

uint32_t TranslationPages::allocate(uint32_t page, uint32_t stream) {
  const Domain& domain = domains_[stream];
  const uint32_t plane = domain.plane_of(page - domain.first_translation_page);
  uint32_t& where = ppa_plus_one_[page];
  if (where != 0) blocks_.invalidate(where - 1);
  bool filled = false;
  const uint32_t ppa = blocks_.allocate(plane, stream, Frontier::kTranslation, filled);
  blocks_.set_owner(ppa, page);
  where = ppa + 1;
  if (filled) space_.block_filled(plane);
  return ppa;
}

uint32_t TranslationPages::move(uint32_t page, uint32_t from, uint32_t stream) {
  arrivals_[page].departing = true;
  blocks_.invalidate(from);
  bool filled = false;
  const uint32_t to =
      blocks_.allocate(geometry_.plane_of(from), stream, Frontier::kTranslation, filled);
  --blocks_[geometry_.block_of(to)].programs;
  ppa_plus_one_[page] = to + 1;
  undo_log_.add({.kind = Undo::Kind::kTranslation, .lpa = page, .ppa = to, .old_ppa = kNone});
  return to;
}

uint32_t TranslationPages::arrived(uint32_t page) {
  Arrival& arrival = arrivals_[page];
  const uint32_t first = arrival.first_plus_one - 1;
  arrival.first_plus_one = arrival.last_plus_one = 0;
  arrival.expected = false;
  return first;
}

TranslationPages::Waiter TranslationPages::leave(uint32_t index) {
  const Waiter waiter = waiters_[index];
  waiters_.give_back(index);
  MappingCache::Slot& slot = cache_[cache_.find(waiter.lpa)];
  slot.waiting = false;
  slot.waiter = kNone;
  return waiter;
}

void TranslationPages::undo(const Undo& change) {
  uint32_t& where = ppa_plus_one_[change.lpa];
  if (where != change.ppa + 1) return;
  blocks_.invalidate(change.ppa);
  where = 0;
}

void TranslationPages::clear() {
  waiters_.clear();
  cache_.clear();
}

}  // namespace cairn::flash
