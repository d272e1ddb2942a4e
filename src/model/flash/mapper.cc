// SPDX-License-Identifier: Apache-2.0
#include "model/flash/mapper.h"

#include <array>
#include <bit>

namespace cairn::flash {

Mapper::Mapper(Shared& shared, TranslationPages& translation, Scheduler& scheduler,
               SpaceSink& space, ReadSink& reads)
    : shared_(shared),
      parameters_(shared.parameters),
      quirks_(shared.quirks),
      geometry_(shared.geometry),
      domains_(shared.domains),
      reserve_(shared.reserve),
      counters_(shared.counters),
      transactions_(shared.transactions),
      pages_(shared.pages),
      blocks_(shared.blocks),
      pending_(shared.pending),
      undo_log_(shared.undo_log),
      translation_(translation),
      scheduler_(scheduler),
      space_(space),
      reads_(reads),
      overfull_(geometry_.planes()),
      plane_load_(geometry_.planes()) {}

void Mapper::dispatch(Fifo transactions) {
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
  scheduler_.open_batch();
  for (uint32_t i = 0; i < ready; ++i) submit(ready_now[i]);
  for (const uint32_t index : more) submit(index);
  scheduler_.close_batch();
}

void Mapper::submit(uint32_t index) {
  scheduler_.add_to_batch(index);
  const uint32_t update = transactions_[index].update_read;
  if (update != kNone) scheduler_.add_to_batch(update);
}

void Mapper::count_query(Kind kind, bool hit) {
  ++counters_.mapping_queries;
  const bool read = kind == Kind::kRead;
  ++(read ? counters_.mapping_read_queries : counters_.mapping_write_queries);
  if (hit) {
    ++counters_.mapping_hits;
    ++(read ? counters_.mapping_read_hits : counters_.mapping_write_hits);
  } else {
    ++(read ? counters_.mapping_read_misses : counters_.mapping_write_misses);
  }
}

// True when the transaction has its flash page and can be scheduled.
bool Mapper::query(uint32_t index) {
  const uint32_t lpa = transactions_[index].lpa;
  const bool hit = translation_.has(lpa);
  count_query(transactions_[index].kind, hit);
  if (!hit) {
    if (!translation_.bring(lpa, transactions_[index].stream)) {
      translation_.wait(index);
      return false;
    }
    ++counters_.mapping_misses_from_memory;
  }
  return translate(index);
}

bool Mapper::translate(uint32_t index) {
  const Transaction& t = transactions_[index];
  translation_.touch(t.lpa);
  if (t.kind == Kind::kRead) {
    translate_read(index);
    return true;
  }
  const uint32_t plane = choose_plane(t.lpa, t.stream);
  transactions_[index].plane = plane;
  if (reserve_.writes_must_wait(blocks_, plane)) {
    overfull(plane).push(transactions_, index);
    if (parameters_.dynamic_spread) {
      for (const uint32_t each : domains_[t.stream].spread) space_.block_filled(each);
    } else if (!quirks_.waits_without_collecting()) {
      space_.block_filled(plane);
    }
    return false;
  }
  place(index);
  return true;
}

uint32_t Mapper::choose_plane(uint32_t lpa, uint32_t stream) {
  const Domain& domain = domains_[stream];
  if (!parameters_.dynamic_spread) return domain.plane_of(lpa - domain.first_lpa);
  // The plane with the fewest programs ahead, looking around from where the last one went.
  const auto planes = static_cast<uint32_t>(domain.spread.size());
  uint32_t best = kNone;
  for (uint32_t i = 0; i < planes; ++i) {
    const uint32_t plane = domain.spread[(plane_turn_ + i) % planes];
    if (reserve_.writes_must_wait(blocks_, plane)) continue;
    if (best == kNone || plane_load_[plane] < plane_load_[best]) best = plane;
    if (plane_load_[best] == 0) break;
  }
  plane_turn_ = (plane_turn_ + 1) % planes;
  return best == kNone ? domain.spread[plane_turn_] : best;
}

void Mapper::translate_read(uint32_t index) {
  const uint32_t lpa = transactions_[index].lpa;
  const PageRecord& record = pages_[lpa];
  if (!record.mapped()) {
    // Never written: the page is read all the same, from wherever it would have been.
    const Domain& domain = domains_[transactions_[index].stream];
    const uint32_t plane = domain.plane_of(lpa - domain.first_lpa);
    if (!quirks_.maps_unwritten_pages()) {
      Transaction& t = transactions_[index];
      t.ppa = kNone;
      t.plane = plane;
      t.page = static_cast<uint32_t>((lpa - domain.first_lpa) / domain.spread.size() %
                                     geometry_.pages());
      return;
    }
    map_unwritten(index, plane);
  }
  Transaction& t = transactions_[index];
  t.ppa = record.ppa();
  t.plane = geometry_.plane_of(t.ppa);
  t.page = geometry_.page_of(t.ppa);
  ++blocks_[geometry_.block_of(t.ppa)].reads;
}

// A read gives the page a place.
void Mapper::map_unwritten(uint32_t index, uint32_t plane) {
  const Transaction& t = transactions_[index];
  bool filled = false;
  const uint32_t ppa = blocks_.allocate(plane, t.stream, Frontier::kData, filled);
  if (filled) space_.block_filled(plane);
  blocks_.set_owner(ppa, t.lpa);
  pages_[t.lpa].map_to(ppa);
  pages_[t.lpa].written = t.sectors;
  translation_.mark_dirty(t.lpa);
}

// Sectors of the old page that the program's data does not cover.
void Mapper::read_rest(uint32_t index, uint64_t sectors) {
  const Transaction program = transactions_[index];
  const PagePart rest{.lpa = program.lpa,
                      .sectors = sectors,
                      .count = static_cast<uint32_t>(std::popcount(sectors))};
  const uint32_t read = shared_.new_transaction(Kind::kRead, program.source, rest, program.stream);
  const uint32_t old = pages_[program.lpa].ppa();
  Transaction& r = transactions_[read];
  r.priority = PriorityClass::kHigh;
  r.update_of = index;
  r.ppa = old;
  r.plane = geometry_.plane_of(old);
  r.page = geometry_.page_of(old);
  ++blocks_[geometry_.block_of(old)].reads;
  transactions_[index].update_read = read;
}

// The old page is invalid from now on. If the new data does not cover it, its other sectors are
// read first.
void Mapper::place(uint32_t index) {
  const uint32_t lpa = transactions_[index].lpa;
  const uint32_t stream = transactions_[index].stream;
  const uint32_t plane = transactions_[index].plane;
  pending_.placed();
  if (pending_.any_superseded()) {
    Transaction& program = transactions_[index];
    program.sectors = pending_.still_wanted(program.lpa, program.sectors, program.stamp);
  }
  const uint64_t sectors = transactions_[index].sectors;
  PageRecord& record = pages_[lpa];
  const uint32_t replaced = record.ppa();
  const uint64_t replaced_sectors = record.written;
  if (record.mapped()) {
    const uint64_t keep = record.written & ~(sectors | transactions_[index].at_hand);
    if (keep != 0) read_rest(index, keep);
    blocks_.invalidate(record.ppa());
  }
  bool filled = false;
  const uint32_t ppa = blocks_.allocate(plane, stream, Frontier::kData, filled);
  Transaction& t = transactions_[index];
  t.ppa = ppa;
  t.page = geometry_.page_of(ppa);
  blocks_.set_owner(ppa, lpa);
  record.map_to(ppa);
  record.written |= sectors;
  undo_log_.add({.kind = Undo::Kind::kPlaced,
                 .lpa = lpa,
                 .ppa = ppa,
                 .old_ppa = replaced,
                 .old_written = replaced_sectors,
                 .sectors = sectors});
  translation_.mark_dirty(lpa);
  ++plane_load_[plane];
  if (filled) space_.block_filled(plane);
}

void Mapper::translation_page_read(uint32_t page) {
  uint32_t waiter = translation_.arrived(page);
  scheduler_.open_batch();
  while (waiter != kNone) {
    const TranslationPages::Waiter w = translation_.leave(waiter);
    for (const Fifo& queue : {w.reads, w.programs}) {
      for (uint32_t t = queue.head; t != kNone;) {
        const uint32_t next = transactions_[t].next;
        if (pages_[w.lpa].locked()) {
          hold_back(t);
        } else if (translate(t)) {
          submit(t);
        }
        t = next;
      }
    }
    waiter = w.next;
  }
  scheduler_.close_batch();
}

// The collector is moving the page: a reader gets the data with the move, and a writer goes on
// after it.
void Mapper::hold_back(uint32_t index) {
  if (!quirks_.loses_requests_on_moved_pages()) {
    held_.push(transactions_, index);
    return;
  }
  if (transactions_[index].request != kNone) ++counters_.requests_lost;
  transactions_.give_back(index);
}

void Mapper::release_held(uint32_t lpa) {
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
      reads_.read_done(index);
      transactions_.give_back(index);
    } else {
      writers.push(transactions_, index);
    }
  }
  if (!writers.empty()) dispatch(writers);
}

void Mapper::retry_overfull(uint32_t plane) {
  Fifo& waiting = overfull(plane);
  if (waiting.empty()) return;
  scheduler_.open_batch();
  while (!waiting.empty()) {
    Transaction& first = transactions_[waiting.head];
    if (parameters_.dynamic_spread) first.plane = choose_plane(first.lpa, first.stream);
    if (reserve_.writes_must_wait(blocks_, first.plane)) break;
    const uint32_t index = waiting.pop(transactions_);
    if (pages_[transactions_[index].lpa].locked()) {
      hold_back(index);
      continue;
    }
    translation_.touch_if_here(transactions_[index].lpa);
    place(index);
    submit(index);
  }
  scheduler_.close_batch();
}

void Mapper::forget_sectors(uint32_t lpa, uint64_t sectors) {
  PageRecord& record = pages_[lpa];
  if (!record.mapped()) return;
  if ((record.written & sectors) != 0) {
    undo_log_.add({.kind = Undo::Kind::kTrimmed,
                   .lpa = lpa,
                   .ppa = record.ppa(),
                   .old_ppa = kNone,
                   .erases = blocks_[geometry_.block_of(record.ppa())].erases,
                   .sectors = record.written & sectors});
  }
  record.written &= ~sectors;
  drop_if_empty(lpa);
}

void Mapper::drop_if_empty(uint32_t lpa) {
  PageRecord& record = pages_[lpa];
  if (!record.mapped() || record.written != 0 || record.locked()) return;
  blocks_.invalidate(record.ppa());
  record.ppa_plus_one = 0;
  translation_.mark_dirty(lpa);
}

void Mapper::undo(const Undo& change, std::map<uint32_t, uint64_t>& lost) {
  PageRecord& record = pages_[change.lpa];
  if (change.kind == Undo::Kind::kTrimmed) {
    const bool erased = blocks_[geometry_.block_of(change.ppa)].erases != change.erases;
    const bool elsewhere = record.mapped() && record.ppa() != change.ppa;
    if (erased || elsewhere) return;
    if (!record.mapped()) {
      blocks_.revalidate(change.ppa);
      record.map_to(change.ppa);
    }
    record.written |= change.sectors;
    lost[change.lpa] |= change.sectors;
    return;
  }
  if (record.ppa() != change.ppa) return;  // newer data is on flash, or a trim that stays
  blocks_.invalidate(change.ppa);
  record.ppa_plus_one = change.old_ppa + 1;
  if (change.old_ppa != kNone) blocks_.revalidate(change.old_ppa);
  if (change.kind == Undo::Kind::kMoved) return;
  record.written = change.old_written;
  lost[change.lpa] |= change.sectors;
}

void Mapper::clear() {
  overfull_.assign(overfull_.size(), Fifo{});
  held_ = {};
  plane_load_.assign(plane_load_.size(), 0);
}

}  // namespace cairn::flash
