// SPDX-License-Identifier: Apache-2.0
// Flushes, and what a power cut leaves.
#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "model/flash/engine.h"

namespace cairn::flash {

namespace {

// Dirty pages of a flush go to flash in groups, so that the first need not wait for the last.
constexpr uint32_t kPagesPerGroup = 64;

class Nobody final : public CompletionSink {
 public:
  void completed(const Completion&) override {}
};

}  // namespace

// A protected cache outlives a power cut. A volatile one is written back, and the flush waits for
// everything that was on its way to flash before it, and for translation pages that tell of trims.
void Engine::flush(uint32_t index) {
  if (!has_volatile_cache()) return serviced_request(index);
  requests_[index].pages_left = 1;
  write_back_dirty();
  flushes_.push_back({.request = index, .epoch = barriers_.raise(), .trims = undo_log_.end()});
  persist_trims();
  finish_flushes();
}

void Engine::write_back_dirty() {
  Fifo group;
  uint32_t pages = 0;
  uint32_t sectors = 0;
  const auto send = [&] {
    write_back_sectors_ += sectors;
    use_dram({.use = DramUse::kEviction, .evicted = group}, sectors);
    group = {};
    pages = sectors = 0;
  };
  cache_.for_each_dirty([&](uint32_t slot) {
    const Cut page = to_write_back(cache_[slot]);
    const uint32_t stream = stream_of(page.lpa);
    const uint32_t transaction = new_transaction(Kind::kProgram, Source::kCache, page, stream);
    transactions_[transaction].stamp = cache_[slot].stamp;
    cache_.set_status(slot, DataCache::Status::kWritingBack);
    group.push(transactions_, transaction);
    sectors += page.count;
    if (++pages == kPagesPerGroup) send();
  });
  if (pages > 0) send();
}

// Writes the translation pages of trims that only DRAM knows. One that is on its way to flash
// already does not tell of the newest trims: they wait for its next journey.
void Engine::persist_trims() {
  std::set<uint32_t> written;
  undo_log_.drop_trims([&](Undo& trim) {
    const uint32_t page = translation_page_of(trim.lpa, stream_of(trim.lpa));
    if (trim.persisting || (arrivals_[page].departing && !written.contains(page))) return false;
    trim.persisting = true;
    if (written.insert(page).second) arrivals_[page].departing = true;
    return false;
  });
  for (const uint32_t page : written) {
    uint32_t stream = 0;
    while (page > domains_[stream].first_translation_page + domains_[stream].translation_pages) {
      ++stream;
    }
    const Domain& domain = domains_[stream];
    const uint64_t entry = (page - domain.first_translation_page) * entries_per_translation_;
    write_back_mapping(static_cast<uint32_t>(domain.first_lpa + entry), stream);
  }
}

void Engine::translation_page_programmed(uint32_t page) {
  undo_log_.drop_trims([&](const Undo& trim) {
    return trim.persisting && translation_page_of(trim.lpa, stream_of(trim.lpa)) == page;
  });
  if (flushes_.empty()) return;
  persist_trims();
  finish_flushes();
}

// Flushes end in the order in which they came.
void Engine::finish_flushes() {
  while (!flushes_.empty()) {
    const Flush flush = flushes_.front();
    if (!barriers_.has_fallen(flush.epoch) || undo_log_.has_trim_before(flush.trims)) return;
    flushes_.pop_front();
    requests_[flush.request].pages_left = 0;
    finish_if_done(flush.request);
  }
}

// Data of these sectors from before `version` that has no flash page yet must not come back.
void Engine::supersede(uint32_t lpa, uint64_t sectors, Nanos version) {
  if (unplaced_ == 0 || mqsim_) return;
  superseded_.emplace(lpa, Superseded{.version = version, .sectors = sectors});
  expiries_.push_back({.epoch = barriers_.raise(), .lpa = lpa, .version = version});
}

void Engine::forget_superseded() {
  while (!expiries_.empty() && barriers_.has_fallen(expiries_.front().epoch)) {
    const Expiry expiry = expiries_.front();
    expiries_.pop_front();
    const auto [first, last] = superseded_.equal_range(expiry.lpa);
    const auto found = std::find_if(
        first, last, [&](const auto& entry) { return entry.second.version == expiry.version; });
    if (found != last) superseded_.erase(found);
  }
}

uint64_t Engine::still_wanted(const Transaction& t) const {
  uint64_t sectors = t.sectors;
  const auto [first, last] = superseded_.equal_range(t.lpa);
  for (auto entry = first; entry != last; ++entry) {
    if (t.stamp < entry->second.version) sectors &= ~entry->second.sectors;
  }
  return sectors;
}

void Engine::keep_undo(const Undo& undo) {
  undo_log_.add(undo);
  if (undo.old_ppa != kNone) ++blocks_[geometry_.block_of(undo.old_ppa)].pins;
}

void Engine::drop_undo(uint32_t ppa) {
  const std::optional<Undo> undo = undo_log_.programmed(ppa);
  if (undo && undo->old_ppa != kNone) unpin(geometry_.block_of(undo->old_ppa));
}

void Engine::unpin(uint32_t block) {
  if (--blocks_[block].pins > 0 || !blocks_[block].collecting) return;
  wake_later(geometry_.plane_of_block(block));
}

std::vector<PageSectors> Engine::power_loss(Nanos now) {
  CHECK(!mqsim_, "the reference knows no power cut");
  CHECK(now >= now_ && now <= next_event(), "the model was advanced to when power fails");
  now_ = now;
  const uint64_t cut = in_flight();
  std::map<uint32_t, uint64_t> lost;
  if (has_volatile_cache()) {
    cache_.for_each_dirty(
        [&](uint32_t slot) { lost[cache_[slot].lpa] |= cache_[slot].dirty_sectors; });
    transactions_.for_each([&](const Transaction& t) {
      const bool user = t.source == Source::kUser || t.source == Source::kCache;
      if (user && t.kind == Kind::kProgram && t.ppa == kNone) lost[t.lpa] |= still_wanted(t);
    });
    stop_everything();
    undo_log_.unwind([&](const Undo& change) { undo(change, lost); });
  } else {
    Nobody nobody;
    advance(kNever, nobody);
    mapping_cache_.clear();
    counters_.requests_completed -= cut;
  }
  counters_.requests_cut += cut;
  std::vector<PageSectors> pages;
  for (const auto& [lpa, sectors] : lost) {
    if (sectors != 0) pages.push_back({.lpa = lpa, .sectors = sectors});
  }
  return pages;
}

void Engine::undo(const Undo& change, std::map<uint32_t, uint64_t>& lost) {
  if (change.kind == Undo::Kind::kTranslation) {
    // Recovery makes it anew, in DRAM.
    uint32_t& where = translation_ppa_plus_one_[change.lpa];
    if (where != change.ppa + 1) return;
    blocks_.invalidate(change.ppa);
    where = 0;
    return;
  }
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

// Every queue is empty and everybody idle; tables stay.
void Engine::stop_everything() {
  transactions_.for_each([&](const Transaction& t) {
    if (t.source == Source::kMapping) arrivals_[t.lpa] = {};
    if (t.source != Source::kCollector || t.kind != Kind::kProgram) return;
    if (blocks_[collections_[t.collection].block].mapping) {
      arrivals_[t.lpa] = {};
    } else {
      pages_[t.lpa].unlock();
    }
  });
  down_.clear();
  up_.clear();
  dram_.clear();
  flash_.clear();
  requests_.clear();
  transactions_.clear();
  waiters_.clear();
  collections_.clear();
  mapping_cache_.clear();
  cache_.clear();
  blocks_.settle();
  std::ranges::fill(streams_, Stream{});
  std::ranges::fill(overfull_, Fifo{});
  held_ = {};
  std::ranges::fill(queues_, Ends{});
  std::ranges::fill(chips_, Chip{});
  for (Die& die : dies_) {
    const Nanos busy = die.busy_time + (die.busy ? now_ - die.busy_since : 0);
    die = {};
    die.busy_time = busy;
  }
  for (Channel& channel : channels_) {
    const Nanos busy = channel.busy_time;
    channel = {};
    channel.busy_time = busy;
  }
  std::ranges::fill(plane_load_, 0);
  write_back_sectors_ = 0;
  barriers_ = {};
  unplaced_ = 0;
  flushes_.clear();
  superseded_.clear();
  expiries_.clear();
}

}  // namespace cairn::flash
