// SPDX-License-Identifier: Apache-2.0
// Requests become pages here, and pages meet the data cache.
#include <bit>

#include "base/check.h"
#include "model/flash/engine.h"

namespace cairn::flash {

namespace {

// A page not written since this long ago is written back at once: it is probably cold.
constexpr Nanos kWriteFilterPeriod = 1'000'000'000;
// So many trims may be known to DRAM alone; then translation pages tell of them.
constexpr size_t kTrimsMax = 4096;

uint32_t count(uint64_t sectors) { return static_cast<uint32_t>(std::popcount(sectors)); }

}  // namespace

Engine::Cut Engine::cut(RequestState& request) {
  const Domain& domain = domains_[request.stream];
  uint64_t lba = request.cut_lba;
  if (lba >= domain.logical_sectors) {
    // The reference wraps one sector early.
    lba %= mqsim_ ? domain.logical_sectors - 1 : domain.logical_sectors;
  }
  const auto offset = static_cast<uint32_t>(lba % geometry_.sectors());
  uint32_t sectors = std::min(geometry_.sectors() - offset, request.cut_sectors);
  if (!mqsim_) sectors = std::min<uint64_t>(sectors, domain.logical_sectors - lba);
  request.cut_lba = lba + sectors;
  request.cut_sectors -= sectors;
  const uint64_t ones = sectors == 64 ? ~uint64_t{0} : (uint64_t{1} << sectors) - 1;
  return {.lpa = static_cast<uint32_t>(domain.first_lpa + lba / geometry_.sectors()),
          .sectors = ones << offset,
          .count = sectors};
}

uint32_t Engine::new_transaction(Kind kind, Source source, const Cut& cut, uint32_t stream) {
  const uint32_t index = transactions_.take();
  Transaction& t = transactions_[index];
  t.kind = kind;
  t.source = source;
  t.priority = parameters_.streams[stream].priority;
  t.stream = static_cast<uint8_t>(stream);
  t.lpa = cut.lpa;
  t.sectors = cut.sectors;
  t.at_hand = cut.at_hand;
  t.bytes = cut.count * kSectorBytes;
  t.stamp = mqsim_ ? now_ : ++version_;
  if (kind == Kind::kProgram) {
    ++unplaced_;
    t.epoch = barriers_.enter();
  }
  return index;
}

void Engine::start_request(uint32_t index) {
  RequestState& request = requests_[index];
  request.cut_lba = request.lba;
  request.cut_sectors = request.sectors;
  request.stamp = now_;
  switch (request.op) {
    case Op::kRead:
      return start_read(index);
    case Op::kWrite:
      counters_.sectors_written += request.sectors;
      return start_write(index);
    case Op::kTrim:
      trim(index);
      return requests_[index].durable ? flush(index) : serviced_request(index);
    case Op::kFlush:
      return flush(index);
  }
}

void Engine::start_read(uint32_t index) {
  const uint32_t stream = requests_[index].stream;
  const bool cached = parameters_.streams[stream].cache != CacheMode::kOff;
  Fifo from_flash;
  uint32_t from_cache = 0;
  while (requests_[index].cut_sectors > 0) {
    Cut page = cut(requests_[index]);
    const uint32_t slot = cached ? cache_.find(page.lpa) : kNone;
    if (slot != kNone) {
      cache_.touch(slot);
      const uint64_t here = cache_[slot].sectors & page.sectors;
      from_cache += count(here);
      page.sectors &= ~here;
      page.count -= count(here);
      if (page.sectors == 0) {
        ++counters_.cache_read_hits;
        continue;
      }
    }
    if (cached) ++counters_.cache_read_misses;
    const uint32_t transaction = new_transaction(Kind::kRead, Source::kUser, page, stream);
    transactions_[transaction].request = index;
    ++requests_[index].pages_left;
    from_flash.push(transactions_, transaction);
  }
  if (from_cache > 0) {
    requests_[index].dram_sectors = from_cache;
    use_dram({.use = DramUse::kUser, .request = index, .sectors = from_cache, .evicted = {}},
             from_cache);
  }
  if (!from_flash.empty()) dispatch(from_flash);
}

void Engine::start_write(uint32_t index) {
  RequestState& request = requests_[index];
  const CacheMode mode = parameters_.streams[request.stream].cache;
  if (mode == CacheMode::kWrite || mode == CacheMode::kReadWrite) {
    to_cache(index);
    if (requests_[index].cut_sectors > 0) streams_[0].blocked.push(requests_, index);
    return;
  }
  Fifo pages;
  while (requests_[index].cut_sectors > 0) {
    const Cut page = cut(requests_[index]);
    const uint32_t transaction =
        new_transaction(Kind::kProgram, Source::kUser, page, requests_[index].stream);
    transactions_[transaction].request = index;
    ++requests_[index].pages_left;
    pages.push(transactions_, transaction);
  }
  dispatch(pages);
}

// Takes as many pages of a write as the cache and the write-back allow. A page that is probably
// cold goes on to flash at once; it is counted against the write-back until it is programmed.
void Engine::to_cache(uint32_t index) {
  const uint32_t stream = requests_[index].stream;
  uint32_t evicted_sectors = 0;
  uint32_t write_back_sectors = 0;
  uint32_t dram_sectors = 0;
  Fifo evicted;
  Fifo write_back;
  while (requests_[index].cut_sectors > 0 &&
         write_back_sectors_ + evicted_sectors + write_back_sectors < write_back_sectors_max_) {
    const RequestState before = requests_[index];
    const Cut page = cut(requests_[index]);
    const Nanos stamp = mqsim_ ? before.stamp : ++version_;
    uint32_t slot = cache_.find(page.lpa);
    if (slot != kNone) {
      cache_.update(slot, page.sectors, stamp);
    } else {
      if (cache_.full() && !make_room_in_cache(evicted, evicted_sectors)) {
        requests_[index].cut_lba = before.cut_lba;
        requests_[index].cut_sectors = before.cut_sectors;
        break;
      }
      cache_.insert(page.lpa, page.sectors, stamp, DataCache::Status::kDirty);
      slot = cache_.find(page.lpa);
    }
    dram_sectors += page.count;
    PageRecord& record = pages_[page.lpa];
    if (record.written_in() != write_period_ || before.durable) {
      record.set_written_in(write_period_);
      // The reference forgets other dirty sectors of the page.
      const Cut dirty = mqsim_ ? page : to_write_back(cache_[slot]);
      if (before.durable) supersede(page.lpa, dirty.sectors, stamp);
      cache_.set_status(slot, DataCache::Status::kWritingBack);
      write_back_sectors += dirty.count;
      const uint32_t transaction = new_transaction(Kind::kProgram, Source::kUser, dirty, stream);
      transactions_[transaction].stamp = stamp;
      if (before.durable) {
        transactions_[transaction].request = index;
        ++requests_[index].programs_left;
      }
      write_back.push(transactions_, transaction);
    }
  }
  RequestState& request = requests_[index];
  // A write is done when its last page is in DRAM: what is left to cut keeps it open.
  request.pages_left = request.cut_sectors > 0 ? 1 : 0;
  request.dram_sectors += dram_sectors;
  write_back_sectors_ += evicted_sectors + write_back_sectors;
  if (!evicted.empty()) {
    use_dram({.use = DramUse::kEviction, .evicted = evicted}, evicted_sectors);
  }
  if (dram_sectors > 0) {
    use_dram({.use = DramUse::kUser, .request = index, .sectors = dram_sectors, .evicted = {}},
             dram_sectors);
  }
  if (!write_back.empty()) dispatch(write_back);
  if (now_ > next_period_) {
    ++write_period_;
    next_period_ = now_ + kWriteFilterPeriod;
  }
}

bool Engine::make_room_in_cache(Fifo& evicted, uint32_t& sectors) {
  DataCache::Slot slot;
  if (parameters_.cache_evicts_dirty_only) {
    if (!cache_.evict_dirty(slot)) {
      // Without a write-back under way nobody would ever make room: then a clean page goes.
      if (mqsim_ || write_back_sectors_ > 0) return false;
      slot = cache_.evict();
    }
  } else {
    slot = cache_.evict();
  }
  if (slot.status != DataCache::Status::kDirty) return true;
  const Cut page = to_write_back(slot);
  const uint32_t transaction =
      new_transaction(Kind::kProgram, Source::kCache, page, stream_of(slot.lpa));
  transactions_[transaction].priority = PriorityClass::kUrgent;
  transactions_[transaction].stamp = slot.stamp;
  evicted.push(transactions_, transaction);
  sectors += page.count;
  ++counters_.cache_evictions;
  return true;
}

Engine::Cut Engine::to_write_back(const DataCache::Slot& slot) const {
  // The reference also writes sectors that nobody ever wrote.
  if (mqsim_) return {.lpa = slot.lpa, .sectors = slot.sectors, .count = count(slot.sectors)};
  const uint64_t dirty = slot.dirty_sectors;
  const uint64_t clean = slot.sectors & pages_[slot.lpa].written & ~dirty;
  return {.lpa = slot.lpa, .sectors = dirty, .count = count(dirty | clean), .at_hand = clean};
}

void Engine::use_dram(const DramJob& job, uint32_t sectors) {
  dram_.push(job, timing_.dram(sectors * kSectorBytes), now_, order_);
}

void Engine::dram_done(const DramJob& job) {
  switch (job.use) {
    case DramUse::kUser:
      requests_[job.request].dram_sectors -= job.sectors;
      finish_if_done(job.request);
      break;
    case DramUse::kEviction:
      dispatch(job.evicted);
      break;
    case DramUse::kFill:
      break;
  }
}

void Engine::user_read_done(uint32_t index) {
  const Transaction& t = transactions_[index];
  if (t.update_of != kNone) {
    transactions_[t.update_of].update_read = kNone;
    // The program may be on another channel, which knows nothing of the read.
    if (!mqsim_) wake_later(transactions_[t.update_of].plane);
    return;
  }
  const CacheMode mode = parameters_.streams[t.stream].cache;
  if (mode == CacheMode::kRead || mode == CacheMode::kReadWrite) keep_read_page(t);
  --requests_[t.request].pages_left;
  finish_if_done(t.request);
}

void Engine::keep_read_page(const Transaction& t) {
  const uint32_t slot = cache_.find(t.lpa);
  if (slot != kNone) {
    // Data is as new as what was there. The reference marks a page dirty that it only read.
    cache_.touch(slot);
    if (!mqsim_) return cache_.add_clean(slot, t.sectors);
    cache_.update(slot, t.sectors, t.stamp);
    return;
  }
  if (cache_.full()) {
    Fifo evicted;
    uint32_t sectors = 0;
    if (!make_room_in_cache(evicted, sectors)) return;
    if (!evicted.empty()) {
      write_back_sectors_ += sectors;
      use_dram({.use = DramUse::kEviction, .evicted = evicted}, sectors);
    }
  }
  cache_.insert(t.lpa, t.sectors, mqsim_ ? t.stamp : 0, DataCache::Status::kClean);
  use_dram({.use = DramUse::kFill, .evicted = {}}, count(t.sectors));
}

void Engine::program_done(uint32_t index) {
  const Transaction t = transactions_[index];
  barriers_.leave(t.epoch);
  if (!expiries_.empty()) forget_superseded();
  drop_if_empty(t.lpa);
  const CacheMode mode = parameters_.streams[t.stream].cache;
  if (mode == CacheMode::kOff || mode == CacheMode::kRead) {
    if (t.request != kNone) {
      --requests_[t.request].pages_left;
      finish_if_done(t.request);
    }
    if (!flushes_.empty()) finish_flushes();
    return;
  }
  if (t.request != kNone) {
    --requests_[t.request].programs_left;
    finish_if_done(t.request);
  }
  write_back_sectors_ -= t.bytes / kSectorBytes;
  const uint32_t slot = cache_.find(t.lpa);
  if (slot != kNone) {
    cache_.touch(slot);
    if (t.stamp >= cache_[slot].stamp) cache_.remove(slot);
  }
  retry_blocked();
  if (!flushes_.empty()) finish_flushes();
}

void Engine::retry_blocked() {
  Fifo& blocked = streams_[0].blocked;
  uint32_t previous = kNone;
  uint32_t index = blocked.head;
  while (index != kNone) {
    if (write_back_sectors_ >= write_back_sectors_max_) return;
    to_cache(index);
    const uint32_t next = requests_[index].next;
    if (requests_[index].cut_sectors > 0) {
      previous = index;
    } else {
      (previous == kNone ? blocked.head : requests_[previous].next) = next;
      if (next == kNone) blocked.tail = previous;
    }
    index = next;
  }
}

// Whole pages are forgotten, and so are sectors of the others; the data is gone at once, also what
// is still on its way to flash.
void Engine::trim(uint32_t index) {
  counters_.sectors_trimmed += requests_[index].sectors;
  while (requests_[index].cut_sectors > 0) {
    const Cut page = cut(requests_[index]);
    supersede(page.lpa, page.sectors, ++version_);
    if (const uint32_t slot = cache_.find(page.lpa); slot != kNone) {
      cache_.forget(slot, page.sectors);
    }
    PageRecord& record = pages_[page.lpa];
    if (!record.mapped()) continue;
    if ((record.written & page.sectors) != 0) {
      const uint32_t block = geometry_.block_of(record.ppa());
      note_undo({.kind = Undo::Kind::kTrimmed,
                 .lpa = page.lpa,
                 .ppa = record.ppa(),
                 .old_ppa = kNone,
                 .erases = blocks_[block].erases,
                 .sectors = record.written & page.sectors});
    }
    record.written &= ~page.sectors;
    drop_if_empty(page.lpa);
  }
  if (undo_log_.trims() >= kTrimsMax) persist_trims();
}

// A page without sectors needs no place on flash. While the collector moves it, it keeps its place.
void Engine::drop_if_empty(uint32_t lpa) {
  PageRecord& record = pages_[lpa];
  if (!record.mapped() || record.written != 0 || record.locked()) return;
  blocks_.invalidate(record.ppa());
  record.ppa_plus_one = 0;
  mark_dirty(lpa);
}

}  // namespace cairn::flash
