// SPDX-License-Identifier: Apache-2.0
// Garbage collection and wear levelling.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "model/flash/engine.h"

namespace cairn::flash {

void Engine::check_collection(uint32_t plane) {
  if (blocks_.free_blocks(plane) >= gc_start_blocks_) return;
  if (blocks_.ongoing(plane).size() >= victims_per_plane_) return;
  uint32_t block = choose_victim(plane);
  // Chance may find nothing worth collecting, and nobody would ask again.
  const bool found = block != kNone && blocks_[block].invalid > 0;
  if (!mqsim_ && !found) block = choose_greedy(plane);
  if (block == kNone) return;
  if (std::ranges::count(blocks_.ongoing(plane), block) > 0) return;
  if (blocks_[block].written == 0 || blocks_[block].invalid == 0) return;
  collect(block, false);
}

uint32_t Engine::choose_victim(uint32_t plane) {
  switch (parameters_.gc_policy) {
    case GcPolicy::kGreedy:
      return choose_greedy(plane);
    case GcPolicy::kRga:
      return choose_among_random(plane);
    case GcPolicy::kRandom:
      return choose_random(plane, 0, false);
    case GcPolicy::kRandomP:
      return choose_random(plane, 0, true);
    case GcPolicy::kRandomPp:
      return choose_random(plane, parameters_.random_pp_invalid_pages, true);
    case GcPolicy::kFifo: {
      auto& history = blocks_.history(plane);
      for (size_t i = history.size(); i > 0; --i) {
        const uint32_t block = history.front();
        history.pop_front();
        if (mqsim_) return block;
        if (blocks_.safe_victim(block) && blocks_[block].written == geometry_.pages()) {
          if (blocks_[block].invalid > 0) return block;
        }
        // One that was opened and has no page yet stays, too; a free one comes back when opened.
        if (blocks_[block].written > 0 || blocks_.is_frontier(block)) history.push_back(block);
      }
      return kNone;
    }
  }
  return kNone;
}

uint32_t Engine::choose_greedy(uint32_t plane) {
  const uint32_t first = plane * geometry_.blocks();
  const uint32_t end = first + geometry_.blocks();
  if (mqsim_) {
    // The reference starts from block 0, safe or not.
    uint32_t best = first;
    if (std::ranges::count(blocks_.ongoing(plane), best) > 0) ++best;
    for (uint32_t block = first + 1; block < end; ++block) {
      const Block& b = blocks_[block];
      if (b.invalid > blocks_[best].invalid && b.written == geometry_.pages() &&
          blocks_.safe_victim(block)) {
        best = block;
      }
    }
    return best;
  }
  uint32_t best = kNone;
  for (uint32_t block = first; block < end; ++block) {
    const Block& b = blocks_[block];
    if (b.written != geometry_.pages() || b.invalid == 0) continue;
    if (best != kNone && b.invalid <= blocks_[best].invalid) continue;
    if (blocks_.safe_victim(block)) best = block;
  }
  return best;
}

// Randomised greedy: the best of a few blocks drawn at random.
uint32_t Engine::choose_among_random(uint32_t plane) {
  const uint32_t first = plane * geometry_.blocks();
  std::vector<uint32_t> drawn;
  for (uint32_t tries = 0; drawn.size() < rga_choices_ && tries < 64 * geometry_.blocks();
       ++tries) {
    const uint32_t block = first + static_cast<uint32_t>(draw(geometry_.blocks()));
    if (std::ranges::count(drawn, block) > 0) continue;
    if (std::ranges::count(blocks_.ongoing(plane), block) > 0) continue;
    // A block with free pages is no choice; the reference draws it nevertheless.
    if (!mqsim_ && blocks_[block].written != geometry_.pages()) continue;
    if (blocks_.safe_victim(block)) drawn.push_back(block);
  }
  if (drawn.empty()) return kNone;
  std::ranges::sort(drawn);
  uint32_t best = drawn.front();
  for (const uint32_t block : drawn) {
    const Block& b = blocks_[block];
    if (b.invalid > blocks_[best].invalid && b.written == geometry_.pages()) best = block;
  }
  if (!mqsim_ && blocks_[best].invalid == 0) return choose_greedy(plane);
  return best;
}

uint32_t Engine::choose_random(uint32_t plane, uint32_t least_invalid, bool full_only) {
  const uint32_t first = plane * geometry_.blocks();
  uint32_t block = kNone;
  for (uint32_t tries = 0; tries <= geometry_.blocks(); ++tries) {
    block = first + static_cast<uint32_t>(draw(geometry_.blocks()));
    const Block& b = blocks_[block];
    if (full_only && b.written < geometry_.pages()) continue;
    // A block without garbage is no victim; the reference draws it and then collects nothing.
    if (!mqsim_ && (b.written < geometry_.pages() || b.invalid == 0)) continue;
    if (b.invalid >= least_invalid && blocks_.safe_victim(block)) return block;
  }
  return mqsim_ ? block : choose_greedy(plane);
}

void Engine::collect(uint32_t block, bool wear) {
  const uint32_t plane = geometry_.plane_of_block(block);
  const uint32_t index = collections_.take();
  Collection& collection = collections_[index];
  collection.plane = plane;
  collection.block = block;
  collection.wear = wear;
  // The reference marks a block of another plane when it levels wear: it takes the number of the
  // block for that of a channel.
  if (mqsim_ && wear) {
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
  if (mqsim_ && !b.mapping) {
    for (uint32_t page = 0; page < b.written; ++page) {
      const uint32_t ppa = block * geometry_.pages() + page;
      if (!blocks_.valid(ppa)) continue;
      const uint32_t lpa = blocks_.lpa_of(ppa);
      pages_[lpa].lock();
      if (mapping_cache_.has(lpa)) mapping_cache_.touch(mapping_cache_.find(lpa));
    }
  }
  collection.postponed = b.programs + b.reads > 0;
  if (!collection.postponed) {
    start_collection(index);
  } else {
    chips_[geometry_.chip_of_plane(plane)].collections.push(collections_, index);
  }
}

void Engine::start_collection(uint32_t index) {
  Collection& collection = collections_[index];
  const uint32_t block = collection.block;
  Chip& chip = chips_[geometry_.chip_of_plane(collection.plane)];
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
  open_batch();
  if (!collection.postponed) chip.collections.push(collections_, index);
  collection.postponed = false;
  chip.collector_reads += collection.reads_left;
  ++chip.erases;
  // The batch carries no transaction for it: the scheduler reads pages out of the collection.
  wake_later(collection.plane);
  close_batch();
}

// A user of the block is done; a collection may have waited for that.
void Engine::block_released(uint32_t block) {
  if (blocks_[block].programs + blocks_[block].reads > 0) return;
  const uint32_t plane = geometry_.plane_of_block(block);
  if (std::ranges::count(blocks_.ongoing(plane), block) == 0) return;
  Chip& chip = chips_[geometry_.chip_of_plane(plane)];
  for (uint32_t i = chip.collections.head; i != kNone; i = collections_[i].next) {
    if (collections_[i].block == block && collections_[i].postponed) return start_collection(i);
  }
}

void Engine::collector_read_done(uint32_t index) {
  open_batch();
  if (const uint32_t program = move_page(index); program != kNone) add_to_batch(program);
  close_batch();
}

// The die holds the page that was read, and programs it next. Others wait for the die meanwhile.
void Engine::copy_back(uint32_t index) {
  const uint32_t channel_index = geometry_.channel_of_chip(geometry_.chip_of_die(index));
  const uint32_t read = dies_[index].active.transactions[0];
  open_batch();
  const uint32_t program = move_page(read);
  if (program == kNone) {
    wake_later(transactions_[read].plane);
    transactions_.give_back(read);
    release_die(index);
    return close_batch();
  }
  transactions_.give_back(read);
  ++counters_.copybacks;
  dies_[index].active = {.kind = Kind::kProgram, .count = 1, .transactions = {program}};
  if (channels_[channel_index].busy) {
    channels_[channel_index].copybacks.push(transactions_, program);
  } else {
    start_copyback(channel_index, program);
  }
  close_batch();
}

// A page of a victim was read: the program that puts it elsewhere in its plane, or kNone when it
// was overwritten or trimmed meanwhile.
uint32_t Engine::move_page(uint32_t index) {
  const Transaction t = transactions_[index];
  const uint32_t block = geometry_.block_of(t.ppa);
  const uint32_t owner = blocks_.lpa_of(t.ppa);
  ++counters_.gc_pages_read;
  const bool current = blocks_[block].mapping ? translation_ppa_plus_one_[owner] == t.ppa + 1
                                              : pages_[owner].ppa() == t.ppa;
  if (!current) {
    CHECK(!mqsim_, "a locked page keeps its place");
    page_moved(t.collection);
    return kNone;
  }
  const uint32_t stream = blocks_[block].stream;
  const uint32_t program = transactions_.take();
  uint32_t ppa = kNone;
  if (blocks_[block].mapping) {
    arrivals_[owner].departing = true;  // until it is programmed, memory has it
    blocks_.invalidate(t.ppa);
    bool filled = false;
    ppa = blocks_.allocate(t.plane, stream, Frontier::kTranslation, filled);
    --blocks_[geometry_.block_of(ppa)].programs;
    translation_ppa_plus_one_[owner] = ppa + 1;
    note_undo({.kind = Undo::Kind::kTranslation, .lpa = owner, .ppa = ppa, .old_ppa = kNone});
  } else {
    if (!parameters_.ideal_mapping) {
      if (!mapping_cache_.has(owner)) {
        const uint32_t kept = mapping_cache_.find(owner);
        if (kept == kNone) {
          make_room_in_mapping_cache();
          mapping_cache_.insert(owner, translation_page_of(owner, stream), false);
        }
      }
      mapping_cache_.touch(mapping_cache_.find(owner));
    }
    pages_[owner].lock();
    blocks_.invalidate(t.ppa);
    bool filled = false;
    ppa = blocks_.allocate(t.plane, stream, Frontier::kCollector, filled);
    pages_[owner].map_to(ppa);
    note_undo({.kind = Undo::Kind::kMoved, .lpa = owner, .ppa = ppa, .old_ppa = t.ppa});
    mark_dirty(owner);
    ++counters_.mapping_queries;
    ++counters_.mapping_hits;
    ++counters_.mapping_write_queries;
    ++counters_.mapping_write_hits;
    blocks_.set_owner(ppa, owner);
    if (filled) check_collection(t.plane);
  }
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

void Engine::collector_program_done(uint32_t index) {
  const Transaction t = transactions_[index];
  const Collection& collection = collections_[t.collection];
  ++counters_.gc_pages_programmed;
  if (blocks_[collection.block].mapping) {
    arrivals_[t.lpa].departing = false;
    if (!flushes_.empty()) persist_trims();
  } else {
    pages_[t.lpa].unlock();
    drop_if_empty(t.lpa);
    release_held(t.lpa);
  }
  page_moved(t.collection);
}

void Engine::page_moved(uint32_t index) {
  Collection& collection = collections_[index];
  --collection.moves_left;
  if (collection.moves_left > 0) return;
  wake_later(collection.plane);
}

void Engine::erase_done(uint32_t index) {
  const uint32_t collection = transactions_[index].collection;
  const uint32_t block = collections_[collection].block;
  const uint32_t plane = collections_[collection].plane;
  collections_.give_back(collection);
  std::erase(blocks_.ongoing(plane), block);
  blocks_.erased(block);
  ++counters_.blocks_erased;
  level_wear(plane);
  retry_overfull(plane);
  if (mqsim_ ? writes_must_wait(plane) : true) check_collection(plane);
}

// Moves the data of the least worn block, so that the block takes its part of the wear.
void Engine::level_wear(uint32_t plane) {
  if (!parameters_.static_wear_levelling) return;
  const uint32_t hot = blocks_.hottest(plane);
  if (mqsim_) {
    // The reference compares the numbers of the blocks, and not how worn they are.
    const uint32_t cold = blocks_.coldest(plane);
    if (hot - cold < parameters_.static_wear_threshold) return;
    if (blocks_.safe_victim(cold)) collect(cold, true);
    return;
  }
  if (!blocks_.ongoing(plane).empty() || blocks_.free_blocks(plane) <= stop_blocks_) return;
  uint32_t cold = kNone;
  const uint32_t first = plane * geometry_.blocks();
  for (uint32_t block = first; block < first + geometry_.blocks(); ++block) {
    if (blocks_[block].written != geometry_.pages()) continue;
    if (cold != kNone && blocks_[block].erases >= blocks_[cold].erases) continue;
    if (blocks_.safe_victim(block)) cold = block;
  }
  if (cold == kNone) return;
  if (blocks_[hot].erases - blocks_[cold].erases < parameters_.static_wear_threshold) return;
  collect(cold, true);
}

bool Engine::collector_urgent(uint32_t chip) const {
  if (!parameters_.gc_preemptible) return true;
  const uint32_t first = chip * geometry_.planes_per_chip();
  for (uint32_t plane = first; plane < first + geometry_.planes_per_chip(); ++plane) {
    if (blocks_.free_blocks(plane) < gc_hard_blocks_) return true;
  }
  return false;
}

}  // namespace cairn::flash
