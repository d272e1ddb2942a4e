// SPDX-License-Identifier: Apache-2.0
#include "model/flash/model.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::flash {

namespace {

class Nobody final : public CompletionSink {
 public:
  void completed(const Completion&) override {}
};

}  // namespace

FlashModel::FlashModel(const Parameters& parameters)
    : shared_(parameters),
      collections_(shared_.geometry),
      bus_(shared_, *this),
      scheduler_(shared_, collections_, bus_),
      link_(shared_, *this),
      translation_(shared_, scheduler_, *this),
      mapper_(shared_, translation_, scheduler_, *this, *this),
      flushes_(shared_, link_, translation_),
      collector_(shared_, {.collections = collections_,
                           .scheduler = scheduler_,
                           .bus = bus_,
                           .translation = translation_,
                           .mapper = mapper_,
                           .flushes = flushes_}),
      cache_(shared_, link_, mapper_, flushes_, scheduler_) {
  translation_.store_empty_table();
}

Nanos FlashModel::next_event() const {
  return std::min({link_.next_down().time, link_.next_up().time, cache_.next_dram().time,
                   shared_.events.next().time});
}

void FlashModel::submit(const HostRequest& request, Nanos now) {
  CHECK(now >= shared_.clock.now && now <= next_event(),
        "the model was advanced to when the request comes");
  shared_.clock.now = now;
  link_.submit(request);
}

void FlashModel::advance(Nanos until, CompletionSink& sink) {
  Clock& clock = shared_.clock;
  for (;;) {
    const Moment down = link_.next_down();
    const Moment up = link_.next_up();
    const Moment dram = cache_.next_dram();
    const Moment flash = shared_.events.next();
    const Moment link = down < up ? down : up;
    const Moment inside = dram < flash ? dram : flash;
    const Moment first = link < inside ? link : inside;
    if (first.time > until) break;
    if (first.time == kNever) return;
    clock.now = first.time;
    ++shared_.counters.events;
    if (first.order == flash.order) {
      flash_event(flash.order);
    } else if (first.order == down.order) {
      link_.arrive_down();
    } else if (first.order == up.order) {
      link_.arrive_up(sink);
    } else {
      cache_.dram_done();
    }
  }
  if (until != kNever) clock.now = std::max(clock.now, until);
}

void FlashModel::flash_event(uint64_t order) {
  const uint32_t what = shared_.events.pop();
  if ((what & kDieEvent) != 0) {
    bus_.die_event(what & ~kDieEvent, order);
  } else if ((what & kCommandEvent) != 0) {
    cache_.start_request(what & ~kCommandEvent);
  } else {
    bus_.transfer_done(what);
  }
}

void FlashModel::serviced(uint32_t index) {
  const Transaction t = shared_.transactions[index];
  if (t.kind == Kind::kProgram) {
    const uint32_t unpinned = shared_.undo_log.programmed(t.ppa);
    if (unpinned != kNone) scheduler_.wake_later(shared_.geometry.plane_of_block(unpinned));
  }
  if (t.source == Source::kCollector) {
    if (t.kind == Kind::kRead) return collector_.read_done(index);
    if (t.kind == Kind::kProgram) return collector_.program_done(index);
    return collector_.erase_done(index);
  }
  if (t.ppa != kNone) release_block(t);
  if (t.source == Source::kMapping) return mapping_done(t);
  if (t.kind == Kind::kRead) {
    ++shared_.counters.user_pages_read;
    cache_.read_done(index);
  } else {
    ++shared_.counters.user_pages_programmed;
    mapper_.programmed(t.plane);
    cache_.program_done(index);
  }
}

void FlashModel::release_block(const Transaction& t) {
  const uint32_t index = shared_.geometry.block_of(t.ppa);
  Block& block = shared_.blocks[index];
  --(t.kind == Kind::kRead ? block.reads : block.programs);
  collector_.block_released(index);
  // When writes found no victim because every block was being written, this may be the first.
  if (!shared_.quirks.waits_without_collecting() && mapper_.has_overfull(t.plane)) {
    collector_.check(t.plane);
  }
}

void FlashModel::mapping_done(const Transaction& t) {
  if (t.kind == Kind::kRead) {
    ++shared_.counters.mapping_pages_read;
    mapper_.translation_page_read(t.lpa);
  } else {
    ++shared_.counters.mapping_pages_programmed;
    translation_.landed(t.lpa);
    flushes_.translation_page_programmed(t.lpa);
  }
}

std::vector<PageSectors> FlashModel::power_loss(Nanos now) {
  CHECK(!shared_.quirks.has_no_power_cut(), "the reference knows no power cut");
  CHECK(now >= shared_.clock.now && now <= next_event(),
        "the model was advanced to when power fails");
  shared_.clock.now = now;
  const uint64_t cut = in_flight();
  std::map<uint32_t, uint64_t> lost;
  if (has_volatile_cache()) {
    cache_.add_dirty(lost);
    shared_.transactions.for_each([&](const Transaction& t) {
      const bool user = t.source == Source::kUser || t.source == Source::kCache;
      if (!user || t.kind != Kind::kProgram || t.ppa != kNone) return;
      lost[t.lpa] |= shared_.pending.still_wanted(t.lpa, t.sectors, t.stamp);
    });
    stop();
    shared_.undo_log.unwind([&](const Undo& change) {
      if (change.kind == Undo::Kind::kTranslation) return translation_.undo(change);
      mapper_.undo(change, lost);
    });
  } else {
    Nobody nobody;
    advance(kNever, nobody);
    translation_.cache().clear();
    shared_.counters.requests_completed -= cut;
  }
  shared_.counters.requests_cut += cut;
  std::vector<PageSectors> pages;
  for (const auto& [lpa, sectors] : lost) {
    if (sectors != 0) pages.push_back({.lpa = lpa, .sectors = sectors});
  }
  return pages;
}

void FlashModel::stop() {
  shared_.transactions.for_each([&](const Transaction& t) {
    if (t.source == Source::kMapping) translation_.forget_arrival(t.lpa);
    if (t.source != Source::kCollector || t.kind != Kind::kProgram) return;
    if (shared_.blocks[collections_[t.collection].block].mapping) {
      translation_.forget_arrival(t.lpa);
    } else {
      shared_.pages[t.lpa].unlock();
    }
  });
  shared_.clear();
  collections_.clear();
  bus_.clear();
  scheduler_.clear();
  link_.clear();
  translation_.clear();
  mapper_.clear();
  flushes_.clear();
  cache_.clear();
}

size_t FlashModel::table_bytes() const {
  return shared_.pages.bytes() + shared_.blocks.table_bytes() + translation_.table_bytes();
}

size_t FlashModel::pool_bytes() const {
  return shared_.requests.peak() * sizeof(RequestState) +
         shared_.transactions.peak() * sizeof(Transaction) + collections_.pool_bytes() +
         translation_.pool_bytes() + cache_.cache().used() * sizeof(DataCache::Slot);
}

}  // namespace cairn::flash
