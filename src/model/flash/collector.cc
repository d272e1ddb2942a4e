// SPDX-License-Identifier: Apache-2.0
#include "model/flash/collector.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::flash {

Collector::Collector(Shared& shared, const CollectorParts& parts)
    : parameters_(shared.parameters),
      quirks_(shared.quirks),
      geometry_(shared.geometry),
      reserve_(shared.reserve),
      counters_(shared.counters),
      transactions_(shared.transactions),
      pages_(shared.pages),
      blocks_(shared.blocks),
      undo_log_(shared.undo_log),
      collections_(parts.collections),
      scheduler_(parts.scheduler),
      bus_(parts.bus),
      translation_(parts.translation),
      mapper_(parts.mapper),
      flushes_(parts.flushes),
      victims_(shared) {}

void Collector::check(uint32_t plane) {
  if (blocks_.free_blocks(plane) >= reserve_.start) return;
  if (blocks_.ongoing(plane).size() >= reserve_.victims_at_once) return;
  uint32_t block = victims_.choose(plane);
  // A random choice may find nothing worth collecting, and nobody would ask again.
  const bool found = block != kNone && blocks_[block].invalid > 0;
  if (!found && !quirks_.gives_up_without_garbage()) block = victims_.greedy(plane);
  if (block == kNone) return;
  if (std::ranges::count(blocks_.ongoing(plane), block) > 0) return;
  if (blocks_[block].written == 0 || blocks_[block].invalid == 0) return;
  collect(block, false);
}

void Collector::collect(uint32_t block, bool wear) {
  const uint32_t plane = geometry_.plane_of_block(block);
  const uint32_t index = collections_.take();
  Collection& collection = collections_[index];
  collection.plane = plane;
  collection.block = block;
  collection.wear = wear;
  if (wear && quirks_.levels_wear_by_number()) {
    // The number of the block is taken for that of a channel.
    const uint32_t channel = block - plane * geometry_.blocks();
    if (channel < geometry_.channels()) {
      const uint32_t chip = channel * geometry_.chips_per_channel();
      blocks_[chip * geometry_.planes_per_chip() * geometry_.blocks()].collecting = true;
    }
  } else {
    blocks_[block].collecting = true;
  }
  blocks_.ongoing(plane).push_back(block);
  const Block& b = blocks_[block];
  if (quirks_.locks_whole_victims() && !b.mapping) {
    for (uint32_t page = 0; page < b.written; ++page) {
      const uint32_t ppa = block * geometry_.pages() + page;
      if (!blocks_.valid(ppa)) continue;
      const uint32_t lpa = blocks_.lpa_of(ppa);
      pages_[lpa].lock();
      translation_.touch_if_here(lpa);
    }
  }
  collection.postponed = b.programs + b.reads > 0;
  if (!collection.postponed) {
    start(index);
  } else {
    collections_.stand_in_line(index);
  }
}

void Collector::start(uint32_t index) {
  Collection& collection = collections_[index];
  const uint32_t block = collection.block;
  for (uint32_t page = 0; page < blocks_[block].written; ++page) {
    if (!blocks_.valid(block * geometry_.pages() + page)) continue;
    collection.unread[page / 64] |= uint64_t{1} << (page % 64);
    ++collection.reads_left;
  }
  collection.moves_left = collection.reads_left;
  if (collection.wear) {
    ++counters_.wear_executions;
    counters_.wear_page_moves += collection.moves_left;
  } else {
    ++counters_.gc_executions;
    counters_.gc_page_moves += collection.moves_left;
  }
  scheduler_.open_batch();
  if (!collection.postponed) collections_.stand_in_line(index);
  collection.postponed = false;
  collections_.start(index);
  // The batch carries no transaction for it: the scheduler reads pages out of the collection.
  scheduler_.wake_later(collection.plane);
  scheduler_.close_batch();
}

void Collector::block_released(uint32_t block) {
  if (blocks_[block].programs + blocks_[block].reads > 0) return;
  const uint32_t plane = geometry_.plane_of_block(block);
  if (std::ranges::count(blocks_.ongoing(plane), block) == 0) return;
  const uint32_t waiting = collections_.postponed(geometry_.chip_of_plane(plane), block);
  if (waiting != kNone) start(waiting);
}

void Collector::read_done(uint32_t index) {
  scheduler_.open_batch();
  const uint32_t program = move_page(index);
  if (program != kNone) scheduler_.add_to_batch(program);
  scheduler_.close_batch();
}

void Collector::copy_back(uint32_t die) {
  const uint32_t read = bus_.die(die).active.transactions[0];
  scheduler_.open_batch();
  const uint32_t program = move_page(read);
  if (program == kNone) {
    scheduler_.wake_later(transactions_[read].plane);
    transactions_.give_back(read);
    bus_.release_die(die);
  } else {
    transactions_.give_back(read);
    bus_.program_copy(die, program);
  }
  scheduler_.close_batch();
}

// A page of a victim was read: the program that puts it elsewhere in its plane, or kNone when it
// was overwritten or trimmed meanwhile.
uint32_t Collector::move_page(uint32_t index) {
  const Transaction t = transactions_[index];
  const Block& block = blocks_[geometry_.block_of(t.ppa)];
  const uint32_t owner = blocks_.lpa_of(t.ppa);
  ++counters_.gc_pages_read;
  const bool current =
      block.mapping ? translation_.is_at(owner, t.ppa) : pages_[owner].ppa() == t.ppa;
  if (!current) {
    CHECK(!quirks_.locks_whole_victims(), "a locked page keeps its place");
    page_moved(t.collection);
    return kNone;
  }
  const uint32_t stream = block.stream;
  const uint32_t program = transactions_.take();
  const uint32_t ppa =
      block.mapping ? translation_.move(owner, t.ppa, stream) : place_of_data(t, owner, stream);
  blocks_.set_owner(ppa, owner);
  Transaction& p = transactions_[program];
  p.kind = Kind::kProgram;
  p.source = Source::kCollector;
  p.stream = static_cast<uint8_t>(stream);
  p.lpa = owner;
  p.ppa = ppa;
  p.plane = t.plane;
  p.page = geometry_.page_of(ppa);
  p.bytes = parameters_.page_bytes;
  p.collection = t.collection;
  return program;
}

// Gives a logical page its new place, and locks it until it is there.
uint32_t Collector::place_of_data(const Transaction& read, uint32_t lpa, uint32_t stream) {
  translation_.keep_for_move(lpa, stream);
  pages_[lpa].lock();
  blocks_.invalidate(read.ppa);
  bool filled = false;
  const uint32_t ppa = blocks_.allocate(read.plane, stream, Frontier::kCollector, filled);
  pages_[lpa].map_to(ppa);
  undo_log_.add({.kind = Undo::Kind::kMoved, .lpa = lpa, .ppa = ppa, .old_ppa = read.ppa});
  translation_.mark_dirty(lpa);
  ++counters_.mapping_queries;
  ++counters_.mapping_hits;
  ++counters_.mapping_write_queries;
  ++counters_.mapping_write_hits;
  blocks_.set_owner(ppa, lpa);
  if (filled) check(read.plane);
  return ppa;
}

void Collector::program_done(uint32_t index) {
  const Transaction t = transactions_[index];
  ++counters_.gc_pages_programmed;
  if (blocks_[collections_[t.collection].block].mapping) {
    translation_.landed(t.lpa);
    if (!flushes_.empty()) flushes_.persist_trims();
  } else {
    pages_[t.lpa].unlock();
    mapper_.drop_if_empty(t.lpa);
    mapper_.release_held(t.lpa);
  }
  page_moved(t.collection);
}

void Collector::page_moved(uint32_t index) {
  Collection& collection = collections_[index];
  --collection.moves_left;
  if (collection.moves_left > 0) return;
  scheduler_.wake_later(collection.plane);
}

void Collector::erase_done(uint32_t index) {
  const uint32_t collection = transactions_[index].collection;
  const uint32_t block = collections_[collection].block;
  const uint32_t plane = collections_[collection].plane;
  collections_.give_back(collection);
  std::erase(blocks_.ongoing(plane), block);
  blocks_.erased(block);
  ++counters_.blocks_erased;
  if (const uint32_t cold = victims_.too_cold(plane); cold != kNone) collect(cold, true);
  mapper_.retry_overfull(plane);
  const bool needed = reserve_.writes_must_wait(blocks_, plane);
  if (needed || !quirks_.collects_on_only_when_full()) check(plane);
}

}  // namespace cairn::flash
