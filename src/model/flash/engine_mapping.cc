// SPDX-License-Identifier: Apache-2.0
// From logical to flash pages: the cached mapping table, and where new pages go.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "model/flash/engine.h"

namespace cairn::flash {

uint32_t Engine::translation_page_of(uint32_t lpa, uint32_t stream) const {
  const Domain& domain = domains_[stream];
  return static_cast<uint32_t>(domain.first_translation_page +
                               (lpa - domain.first_lpa) / entries_per_translation_);
}

uint32_t Engine::stream_of(uint32_t lpa) const {
  uint32_t stream = 0;
  while (stream + 1 < domains_.size() && lpa >= domains_[stream + 1].first_lpa) ++stream;
  return stream;
}

// A drive leaves the factory with its (empty) mapping table on flash. The reference never says that
// those programs ended, so it never collects their blocks.
void Engine::store_mapping_table() {
  for (uint32_t stream = 0; stream < domains_.size(); ++stream) {
    const Domain& domain = domains_[stream];
    for (uint64_t i = 0; i < domain.translation_pages; ++i) {
      const auto page = static_cast<uint32_t>(domain.first_translation_page + i);
      const uint32_t ppa = allocate_translation_page(page, stream);
      if (!mqsim_) --blocks_[geometry_.block_of(ppa)].programs;
    }
  }
}

void Engine::dispatch(Fifo transactions) {
  // One that must wait for its mapping entry moves to another list: remember who follows first.
  std::array<uint32_t, 64> ready_now;
  std::vector<uint32_t> more;
  uint32_t ready = 0;
  for (uint32_t index = transactions.head; index != kNone;) {
    const uint32_t next = transactions_[index].next;
    if (pages_[transactions_[index].lpa].locked()) {
      hold_back(index);
    } else if (query(index)) {
      if (ready < ready_now.size()) {
        ready_now[ready++] = index;
      } else {
        more.push_back(index);
      }
    }
    index = next;
  }
  open_batch();
  for (uint32_t i = 0; i < ready; ++i) submit_translated(ready_now[i]);
  for (const uint32_t index : more) submit_translated(index);
  close_batch();
}

void Engine::submit_translated(uint32_t index) {
  add_to_batch(index);
  const uint32_t update = transactions_[index].update_read;
  if (update != kNone) add_to_batch(update);
}

bool Engine::count_query(const Transaction& t, bool hit) {
  ++counters_.mapping_queries;
  const bool read = t.kind == Kind::kRead;
  ++(read ? counters_.mapping_read_queries : counters_.mapping_write_queries);
  if (hit) {
    ++counters_.mapping_hits;
    ++(read ? counters_.mapping_read_hits : counters_.mapping_write_hits);
  } else {
    ++(read ? counters_.mapping_read_misses : counters_.mapping_write_misses);
  }
  return hit;
}

// True when the transaction has its flash page and can be scheduled.
bool Engine::query(uint32_t index) {
  const Transaction& t = transactions_[index];
  const uint32_t lpa = t.lpa;
  const uint32_t stream = t.stream;
  const Kind kind = t.kind;
  const bool hit = parameters_.ideal_mapping || mapping_cache_.has(lpa);
  count_query(t, hit);
  if (!hit) {
    if (!bring_entry(lpa, stream)) {
      const uint32_t waiter = mapping_cache_[mapping_cache_.find(lpa)].waiter;
      Fifo& queue = kind == Kind::kRead ? waiters_[waiter].reads : waiters_[waiter].programs;
      queue.push(transactions_, index);
      return false;
    }
    ++counters_.mapping_misses_from_memory;
  }
  return translate(index);
}

bool Engine::translate(uint32_t index) {
  const Transaction& t = transactions_[index];
  if (!parameters_.ideal_mapping) {
    const uint32_t slot = mapping_cache_.find(t.lpa);
    if (slot != kNone) mapping_cache_.touch(slot);
  }
  if (t.kind == Kind::kRead) {
    translate_read(index);
    return true;
  }
  const uint32_t plane = choose_plane(t.lpa, t.stream);
  transactions_[index].plane = plane;
  if (writes_must_wait(plane)) {
    overfull(plane).push(transactions_, index);
    if (parameters_.dynamic_spread) {
      for (const uint32_t each : domains_[t.stream].spread) check_collection(each);
    } else if (!mqsim_) {
      check_collection(plane);
    }
    return false;
  }
  allocate_user_page(index);
  return true;
}

uint32_t Engine::choose_plane(uint32_t lpa, uint32_t stream) {
  const Domain& domain = domains_[stream];
  if (!parameters_.dynamic_spread) return domain.plane_of(lpa - domain.first_lpa);
  // The plane with the fewest programs ahead, looking around from where the last one went.
  const auto planes = static_cast<uint32_t>(domain.spread.size());
  uint32_t best = kNone;
  for (uint32_t i = 0; i < planes; ++i) {
    const uint32_t plane = domain.spread[(plane_turn_ + i) % planes];
    if (writes_must_wait(plane)) continue;
    if (best == kNone || plane_load_[plane] < plane_load_[best]) best = plane;
    if (plane_load_[best] == 0) break;
  }
  plane_turn_ = (plane_turn_ + 1) % planes;
  return best == kNone ? domain.spread[plane_turn_] : best;
}

void Engine::translate_read(uint32_t index) {
  const uint32_t lpa = transactions_[index].lpa;
  PageRecord& record = pages_[lpa];
  if (!record.mapped()) {
    // Never written: the page is read all the same, from wherever it would have been. The
    // reference counts a program that never ends; the block cannot be collected any more.
    const uint32_t stream = transactions_[index].stream;
    const Domain& domain = domains_[stream];
    const uint32_t plane = domain.plane_of(lpa - domain.first_lpa);
    if (mqsim_) {
      bool filled = false;
      const uint32_t ppa = blocks_.allocate(plane, stream, Frontier::kData, filled);
      if (filled) check_collection(plane);
      blocks_.set_owner(ppa, lpa);
      record.map_to(ppa);
      record.written = transactions_[index].sectors;
      mark_dirty(lpa);
    } else {
      Transaction& t = transactions_[index];
      t.ppa = kNone;
      t.plane = plane;
      t.page = static_cast<uint32_t>((lpa - domain.first_lpa) / domain.spread.size() %
                                     geometry_.pages());
      return;
    }
  }
  Transaction& t = transactions_[index];
  t.ppa = record.ppa();
  t.plane = geometry_.plane_of(t.ppa);
  t.page = geometry_.page_of(t.ppa);
  ++blocks_[geometry_.block_of(t.ppa)].reads;
}

// The old page is invalid from now on. If the new data does not cover it, its other sectors are
// read first.
void Engine::allocate_user_page(uint32_t index) {
  const uint32_t lpa = transactions_[index].lpa;
  const uint32_t stream = transactions_[index].stream;
  const uint32_t plane = transactions_[index].plane;
  --unplaced_;
  if (!superseded_.empty()) transactions_[index].sectors = still_wanted(transactions_[index]);
  const uint64_t sectors = transactions_[index].sectors;
  PageRecord& record = pages_[lpa];
  const uint32_t replaced = record.ppa();
  const uint64_t replaced_sectors = record.written;
  if (record.mapped()) {
    const uint32_t old = record.ppa();
    const uint64_t keep = record.written & ~(sectors | transactions_[index].at_hand);
    if (keep != 0) {
      const Cut rest{
          .lpa = lpa, .sectors = keep, .count = static_cast<uint32_t>(std::popcount(keep))};
      const Transaction& program = transactions_[index];
      const uint32_t read = new_transaction(Kind::kRead, program.source, rest, stream);
      Transaction& r = transactions_[read];
      r.priority = PriorityClass::kHigh;
      r.update_of = index;
      r.ppa = old;
      r.plane = geometry_.plane_of(old);
      r.page = geometry_.page_of(old);
      ++blocks_[geometry_.block_of(old)].reads;
      transactions_[index].update_read = read;
    }
    blocks_.invalidate(old);
  }
  bool filled = false;
  const uint32_t ppa = blocks_.allocate(plane, stream, Frontier::kData, filled);
  Transaction& t = transactions_[index];
  t.ppa = ppa;
  t.page = geometry_.page_of(ppa);
  blocks_.set_owner(ppa, lpa);
  record.map_to(ppa);
  record.written |= sectors;
  note_undo({.kind = Undo::Kind::kPlaced,
             .lpa = lpa,
             .ppa = ppa,
             .old_ppa = replaced,
             .old_written = replaced_sectors,
             .sectors = sectors});
  mark_dirty(lpa);
  ++plane_load_[plane];
  if (filled) check_collection(plane);
}

void Engine::mark_dirty(uint32_t lpa) {
  if (parameters_.ideal_mapping) return;
  const uint32_t slot = mapping_cache_.find(lpa);
  if (slot != kNone) mapping_cache_[slot].dirty = true;
}

// True when the entry is in the mapping cache afterwards; otherwise a place is kept for it and a
// read of its translation page is under way.
bool Engine::bring_entry(uint32_t lpa, uint32_t stream) {
  const uint32_t page = translation_page_of(lpa, stream);
  const uint32_t kept = mapping_cache_.find(lpa);
  if (kept != kNone) return false;  // somebody waits for it already
  const bool on_flash = translation_ppa_plus_one_[page] != 0;
  const bool expected = arrivals_[page].expected;
  const bool in_memory = !expected && arrivals_[page].departing;
  make_room_in_mapping_cache();
  if (!on_flash || in_memory) {
    mapping_cache_.insert(lpa, page, false);
    return true;
  }
  const uint32_t slot = mapping_cache_.insert(lpa, page, true);
  const uint32_t waiter = waiters_.take();
  waiters_[waiter].lpa = lpa;
  mapping_cache_[slot].waiter = waiter;
  Arrival& arrival = arrivals_[page];
  if (arrival.last_plus_one == 0) {
    arrival.first_plus_one = waiter + 1;
  } else {
    waiters_[arrival.last_plus_one - 1].next = waiter;
  }
  arrival.last_plus_one = waiter + 1;
  if (!expected) {
    arrival.expected = true;
    read_translation_page(page, stream, kSectorBytes);
  }
  return false;
}

void Engine::make_room_in_mapping_cache() {
  if (!mapping_cache_.full()) return;
  bool dirty = false;
  const uint32_t evicted = mapping_cache_.evict(dirty);
  if (evicted == kNone || !dirty) return;
  write_back_mapping(evicted, stream_of(evicted));
}

void Engine::add_mapping_to_batch(Kind kind, const MappingMove& move) {
  const uint32_t index = transactions_.take();
  Transaction& t = transactions_[index];
  t.kind = kind;
  t.source = Source::kMapping;
  t.stream = static_cast<uint8_t>(move.stream);
  t.lpa = move.page;
  t.ppa = move.ppa;
  t.plane = geometry_.plane_of(move.ppa);
  t.page = geometry_.page_of(move.ppa);
  t.bytes = move.bytes;
  add_to_batch(index);
}

void Engine::read_translation_page(uint32_t page, uint32_t stream, uint32_t bytes) {
  open_batch();
  const uint32_t ppa = translation_ppa_plus_one_[page] - 1;
  ++blocks_[geometry_.block_of(ppa)].reads;
  ++counters_.mapping_reads_wanted;
  add_mapping_to_batch(Kind::kRead, {.page = page, .ppa = ppa, .stream = stream, .bytes = bytes});
  close_batch();
}

// Writes the translation page of a dirty entry: every other dirty entry of that page becomes
// clean with it, and what is not in DRAM is read and merged.
void Engine::write_back_mapping(uint32_t lpa, uint32_t stream) {
  open_batch();
  const uint32_t page = translation_page_of(lpa, stream);
  const Domain& domain = domains_[stream];
  const uint64_t first = domain.first_lpa + (page - domain.first_translation_page) *
                                                uint64_t{entries_per_translation_};
  uint64_t clean_sectors = 0;
  std::vector<uint32_t> cleaned;
  for (uint32_t slot = mapping_cache_.first_of(page); slot != kNone;
       slot = mapping_cache_[slot].sibling) {
    MappingCache::Slot& entry = mapping_cache_[slot];
    if (entry.waiting) continue;
    if (entry.dirty) {
      entry.dirty = false;
      if (mqsim_) cleaned.push_back(entry.lpa);
    } else {
      const uint64_t offset = (entry.lpa - first) * mapping_entry_bytes_ / kSectorBytes;
      clean_sectors |= uint64_t{1} << offset;
    }
  }
  // To the reference, looking an entry up is using it.
  std::ranges::sort(cleaned);
  for (const uint32_t entry : cleaned) mapping_cache_.touch(mapping_cache_.find(entry));
  if (translation_ppa_plus_one_[page] != 0) {
    arrivals_[page].expected = true;
    read_translation_page(page, stream,
                          static_cast<uint32_t>(std::popcount(clean_sectors)) * kSectorBytes);
  }
  ++counters_.mapping_writes_wanted;
  const uint32_t ppa = allocate_translation_page(page, stream);
  note_undo({.kind = Undo::Kind::kTranslation, .lpa = page, .ppa = ppa, .old_ppa = kNone});
  arrivals_[page].departing = true;
  if (!mqsim_) {  // the reference queues the program and never issues it
    add_mapping_to_batch(
        Kind::kProgram,
        {.page = page, .ppa = ppa, .stream = stream, .bytes = parameters_.page_bytes});
  }
  close_batch();
}

uint32_t Engine::allocate_translation_page(uint32_t page, uint32_t stream) {
  const Domain& domain = domains_[stream];
  const uint32_t plane = domain.plane_of(page - domain.first_translation_page);
  uint32_t& where = translation_ppa_plus_one_[page];
  if (where != 0) blocks_.invalidate(where - 1);
  bool filled = false;
  const uint32_t ppa = blocks_.allocate(plane, stream, Frontier::kTranslation, filled);
  blocks_.set_owner(ppa, page);
  where = ppa + 1;
  if (filled) check_collection(plane);
  return ppa;
}

void Engine::mapping_read_done(uint32_t index) {
  const uint32_t page = transactions_[index].lpa;
  Arrival& arrival = arrivals_[page];
  uint32_t waiter = arrival.first_plus_one - 1;
  arrival.first_plus_one = arrival.last_plus_one = 0;
  arrival.expected = false;
  open_batch();
  while (waiter != kNone) {
    const Waiter w = waiters_[waiter];
    waiters_.give_back(waiter);
    const uint32_t slot = mapping_cache_.find(w.lpa);
    mapping_cache_[slot].waiting = false;
    mapping_cache_[slot].waiter = kNone;
    for (const Fifo& queue : {w.reads, w.programs}) {
      for (uint32_t t = queue.head; t != kNone;) {
        const uint32_t next = transactions_[t].next;
        if (pages_[w.lpa].locked()) {
          hold_back(t);
        } else if (translate(t)) {
          submit_translated(t);
        }
        t = next;
      }
    }
    waiter = w.next;
  }
  close_batch();
}

// The collector is moving the page. The reference forgets whoever meets it; here a reader gets the
// data with the move, and a writer goes on after it.
void Engine::hold_back(uint32_t index) {
  if (!mqsim_) {
    held_.push(transactions_, index);
    return;
  }
  if (transactions_[index].request != kNone) ++counters_.requests_lost;
  transactions_.give_back(index);
}

void Engine::release_held(uint32_t lpa) {
  if (held_.empty()) return;
  Fifo rest;
  Fifo released;
  while (!held_.empty()) {
    const uint32_t index = held_.pop(transactions_);
    (transactions_[index].lpa == lpa ? released : rest).push(transactions_, index);
  }
  held_ = rest;
  Fifo writers;
  while (!released.empty()) {
    const uint32_t index = released.pop(transactions_);
    if (transactions_[index].kind == Kind::kRead) {
      user_read_done(index);
      transactions_.give_back(index);
    } else {
      writers.push(transactions_, index);
    }
  }
  if (!writers.empty()) dispatch(writers);
}

void Engine::retry_overfull(uint32_t plane) {
  Fifo& waiting = overfull(plane);
  if (waiting.empty()) return;
  open_batch();
  while (!waiting.empty()) {
    Transaction& first = transactions_[waiting.head];
    if (parameters_.dynamic_spread) first.plane = choose_plane(first.lpa, first.stream);
    if (writes_must_wait(first.plane)) break;
    const uint32_t index = waiting.pop(transactions_);
    if (pages_[transactions_[index].lpa].locked()) {
      hold_back(index);
      continue;
    }
    if (!parameters_.ideal_mapping) {
      const uint32_t slot = mapping_cache_.find(transactions_[index].lpa);
      if (slot != kNone && !mapping_cache_[slot].waiting) mapping_cache_.touch(slot);
    }
    allocate_user_page(index);
    submit_translated(index);
  }
  close_batch();
}

}  // namespace cairn::flash
