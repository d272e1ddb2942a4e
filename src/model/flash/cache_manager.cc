// SPDX-License-Identifier: Apache-2.0
#include "model/flash/cache_manager.h"

#include <algorithm>
#include <bit>

namespace cairn::flash {

namespace {

// A page not written since this long ago is written back at once: it is probably cold.
constexpr Nanos kWriteFilterPeriod = 1'000'000'000;
// So many trims may be known to DRAM alone; then translation pages tell of them.
constexpr size_t kTrimsMax = 4096;
// Dirty pages of a flush go to flash in groups, so that the first need not wait for the last.
constexpr uint32_t kPagesPerGroup = 64;

uint32_t count(uint64_t sectors) { return static_cast<uint32_t>(std::popcount(sectors)); }

}  // namespace

CacheManager::CacheManager(Shared& shared, HostLink& link, Mapper& mapper, Flushes& flushes,
                           Scheduler& scheduler)
    : shared_(shared),
      parameters_(shared.parameters),
      quirks_(shared.quirks),
      geometry_(shared.geometry),
      timing_(shared.timing),
      domains_(shared.domains),
      clock_(shared.clock),
      counters_(shared.counters),
      requests_(shared.requests),
      transactions_(shared.transactions),
      pages_(shared.pages),
      pending_(shared.pending),
      undo_log_(shared.undo_log),
      link_(link),
      mapper_(mapper),
      flushes_(flushes),
      scheduler_(scheduler),
      cache_(pages_, parameters_.cache_bytes / parameters_.page_bytes),
      write_back_sectors_max_(static_cast<uint32_t>(parameters_.planes()) *
                              parameters_.write_back_pages * parameters_.sectors_per_page()) {}

PagePart CacheManager::next_part(RequestState& request) {
  const Domain& domain = domains_[request.stream];
  const uint64_t space = domain.logical_sectors;
  const bool early = quirks_.wraps_one_sector_early();
  uint64_t lba = request.cut_lba;
  if (lba >= space) lba %= early ? space - 1 : space;
  const auto offset = static_cast<uint32_t>(lba % geometry_.sectors());
  uint32_t sectors = std::min(geometry_.sectors() - offset, request.cut_sectors);
  if (!early) sectors = std::min<uint64_t>(sectors, space - lba);
  request.cut_lba = lba + sectors;
  request.cut_sectors -= sectors;
  const uint64_t ones = sectors == 64 ? ~uint64_t{0} : (uint64_t{1} << sectors) - 1;
  return {.lpa = static_cast<uint32_t>(domain.first_lpa + lba / geometry_.sectors()),
          .sectors = ones << offset,
          .count = sectors};
}

void CacheManager::start_request(uint32_t index) {
  RequestState& request = requests_[index];
  request.cut_lba = request.lba;
  request.cut_sectors = request.sectors;
  request.stamp = clock_.now;
  switch (request.op) {
    case Op::kRead:
      return start_read(index);
    case Op::kWrite:
      counters_.sectors_written += request.sectors;
      return start_write(index);
    case Op::kTrim:
      trim(index);
      return requests_[index].durable ? flush(index) : link_.finish(index);
    case Op::kFlush:
      return flush(index);
  }
}

void CacheManager::start_read(uint32_t index) {
  const uint32_t stream = requests_[index].stream;
  const bool cached = parameters_.streams[stream].cache != CacheMode::kOff;
  Fifo from_flash;
  uint32_t from_cache = 0;
  while (requests_[index].cut_sectors > 0) {
    PagePart part = next_part(requests_[index]);
    const uint32_t slot = cached ? cache_.find(part.lpa) : kNone;
    if (slot != kNone) {
      cache_.touch(slot);
      const uint64_t here = cache_[slot].sectors & part.sectors;
      from_cache += count(here);
      part.sectors &= ~here;
      part.count -= count(here);
      if (part.sectors == 0) {
        ++counters_.cache_read_hits;
        continue;
      }
    }
    if (cached) ++counters_.cache_read_misses;
    const uint32_t read = shared_.new_transaction(Kind::kRead, Source::kUser, part, stream);
    transactions_[read].request = index;
    ++requests_[index].pages_left;
    from_flash.push(transactions_, read);
  }
  if (from_cache > 0) {
    requests_[index].dram_sectors = from_cache;
    use_dram({.use = DramUse::kUser, .request = index, .sectors = from_cache, .evicted = {}},
             from_cache);
  }
  if (!from_flash.empty()) mapper_.dispatch(from_flash);
}

void CacheManager::start_write(uint32_t index) {
  const uint32_t stream = requests_[index].stream;
  const CacheMode mode = parameters_.streams[stream].cache;
  if (mode == CacheMode::kWrite || mode == CacheMode::kReadWrite) {
    to_cache(index);
    if (requests_[index].cut_sectors > 0) blocked_.push(requests_, index);
    return;
  }
  Fifo programs;
  while (requests_[index].cut_sectors > 0) {
    const PagePart part = next_part(requests_[index]);
    const uint32_t program = shared_.new_transaction(Kind::kProgram, Source::kUser, part, stream);
    transactions_[program].request = index;
    ++requests_[index].pages_left;
    programs.push(transactions_, program);
  }
  mapper_.dispatch(programs);
}

// Takes as many pages of a write as the cache and the write-back allow.
void CacheManager::to_cache(uint32_t index) {
  Outgoing evicted;
  Outgoing write_back;
  uint32_t dram_sectors = 0;
  while (requests_[index].cut_sectors > 0 &&
         write_back_sectors_ + evicted.sectors + write_back.sectors < write_back_sectors_max_) {
    if (!put_part(index, evicted, write_back, dram_sectors)) break;
  }
  RequestState& request = requests_[index];
  // A write is done when its last page is in DRAM: what is left to cut keeps it open.
  request.pages_left = request.cut_sectors > 0 ? 1 : 0;
  request.dram_sectors += dram_sectors;
  write_back_sectors_ += write_back.sectors;
  send_evicted(evicted);
  if (dram_sectors > 0) {
    use_dram({.use = DramUse::kUser, .request = index, .sectors = dram_sectors, .evicted = {}},
             dram_sectors);
  }
  if (!write_back.programs.empty()) mapper_.dispatch(write_back.programs);
  if (clock_.now > next_period_) {
    ++write_period_;
    next_period_ = clock_.now + kWriteFilterPeriod;
  }
}

// The next page of a write. False when there is no room for it.
bool CacheManager::put_part(uint32_t index, Outgoing& evicted, Outgoing& write_back,
                            uint32_t& dram_sectors) {
  RequestState& request = requests_[index];
  const uint64_t lba = request.cut_lba;
  const uint32_t left = request.cut_sectors;
  const PagePart part = next_part(request);
  const Nanos stamp = quirks_.orders_data_by_time() ? request.stamp : pending_.next_version();
  uint32_t slot = cache_.find(part.lpa);
  if (slot != kNone) {
    cache_.update(slot, part.sectors, stamp);
  } else {
    if (cache_.full() && !make_room(evicted)) {
      request.cut_lba = lba;
      request.cut_sectors = left;
      return false;
    }
    cache_.insert(part.lpa, part.sectors, stamp, DataCache::Status::kDirty);
    slot = cache_.find(part.lpa);
  }
  dram_sectors += part.count;
  PageRecord& record = pages_[part.lpa];
  if (record.written_in() != write_period_ || request.durable) {
    record.set_written_in(write_period_);
    write_through_cache(index, part, slot, stamp, write_back);
  }
  return true;
}

// A page that is probably cold, or durable, goes on to flash at once; it is counted against the
// write-back until it is programmed.
void CacheManager::write_through_cache(uint32_t index, const PagePart& part, uint32_t slot,
                                       Nanos stamp, Outgoing& write_back) {
  RequestState& request = requests_[index];
  const PagePart dirty = quirks_.forgets_other_dirty_sectors() ? part : to_write_back(cache_[slot]);
  if (request.durable) pending_.supersede(part.lpa, dirty.sectors, stamp);
  cache_.set_status(slot, DataCache::Status::kWritingBack);
  const uint32_t program =
      shared_.new_transaction(Kind::kProgram, Source::kUser, dirty, request.stream);
  transactions_[program].stamp = stamp;
  if (request.durable) {
    transactions_[program].request = index;
    ++request.programs_left;
  }
  write_back.programs.push(transactions_, program);
  write_back.sectors += dirty.count;
}

bool CacheManager::make_room(Outgoing& evicted) {
  DataCache::Slot slot;
  if (parameters_.cache_evicts_dirty_only) {
    if (!cache_.evict_dirty(slot)) {
      // Without a write-back under way nobody would ever make room: then a clean page goes.
      if (write_back_sectors_ > 0 || quirks_.waits_for_room_forever()) return false;
      slot = cache_.evict();
    }
  } else {
    slot = cache_.evict();
  }
  if (slot.status != DataCache::Status::kDirty) return true;
  const PagePart part = to_write_back(slot);
  const uint32_t program =
      shared_.new_transaction(Kind::kProgram, Source::kCache, part, stream_of(domains_, slot.lpa));
  transactions_[program].priority = PriorityClass::kUrgent;
  transactions_[program].stamp = slot.stamp;
  evicted.programs.push(transactions_, program);
  evicted.sectors += part.count;
  ++counters_.cache_evictions;
  return true;
}

PagePart CacheManager::to_write_back(const DataCache::Slot& slot) const {
  if (quirks_.writes_back_clean_sectors()) {
    return {.lpa = slot.lpa, .sectors = slot.sectors, .count = count(slot.sectors)};
  }
  const uint64_t dirty = slot.dirty_sectors;
  const uint64_t clean = slot.sectors & pages_[slot.lpa].written & ~dirty;
  return {.lpa = slot.lpa, .sectors = dirty, .count = count(dirty | clean), .at_hand = clean};
}

void CacheManager::use_dram(const DramJob& job, uint32_t sectors) {
  dram_.push(job, timing_.dram(sectors * kSectorBytes), clock_);
}

// What was evicted leaves DRAM first.
void CacheManager::send_evicted(const Outgoing& evicted) {
  if (evicted.programs.empty()) return;
  write_back_sectors_ += evicted.sectors;
  use_dram({.use = DramUse::kEviction, .evicted = evicted.programs}, evicted.sectors);
}

void CacheManager::dram_done() {
  const DramJob job = dram_.finish();
  switch (job.use) {
    case DramUse::kUser:
      requests_[job.request].dram_sectors -= job.sectors;
      link_.finish_if_done(job.request);
      break;
    case DramUse::kEviction:
      mapper_.dispatch(job.evicted);
      break;
    case DramUse::kFill:
      break;
  }
  dram_.resume(clock_);
}

void CacheManager::read_done(uint32_t index) {
  const Transaction& t = transactions_[index];
  if (t.update_of != kNone) {
    transactions_[t.update_of].update_read = kNone;
    // The program may be on another channel, which knows nothing of the read.
    if (quirks_.forgets_waiting_updates()) return;
    scheduler_.wake_later(transactions_[t.update_of].plane);
    return;
  }
  const uint32_t request = t.request;
  const CacheMode mode = parameters_.streams[t.stream].cache;
  if (mode == CacheMode::kRead || mode == CacheMode::kReadWrite) keep_read_page(Transaction(t));
  --requests_[request].pages_left;
  link_.finish_if_done(request);
}

void CacheManager::keep_read_page(const Transaction& t) {
  const uint32_t slot = cache_.find(t.lpa);
  if (slot != kNone) {
    // Data is as new as what was there.
    cache_.touch(slot);
    if (!quirks_.marks_read_pages_dirty()) return cache_.add_clean(slot, t.sectors);
    cache_.update(slot, t.sectors, t.stamp);
    return;
  }
  if (cache_.full()) {
    Outgoing evicted;
    if (!make_room(evicted)) return;
    send_evicted(evicted);
  }
  const Nanos stamp = quirks_.orders_data_by_time() ? t.stamp : 0;
  cache_.insert(t.lpa, t.sectors, stamp, DataCache::Status::kClean);
  use_dram({.use = DramUse::kFill, .evicted = {}}, count(t.sectors));
}

void CacheManager::program_done(uint32_t index) {
  const Transaction t = transactions_[index];
  pending_.ended(t.epoch);
  mapper_.drop_if_empty(t.lpa);
  const CacheMode mode = parameters_.streams[t.stream].cache;
  const bool through_cache = mode == CacheMode::kWrite || mode == CacheMode::kReadWrite;
  if (t.request != kNone) {
    RequestState& request = requests_[t.request];
    --(through_cache ? request.programs_left : request.pages_left);
    link_.finish_if_done(t.request);
  }
  if (through_cache) {
    write_back_sectors_ -= t.bytes / kSectorBytes;
    const uint32_t slot = cache_.find(t.lpa);
    if (slot != kNone) {
      cache_.touch(slot);
      if (t.stamp >= cache_[slot].stamp) cache_.remove(slot);
    }
    retry_blocked();
  }
  flushes_.finish_ready();
}

void CacheManager::retry_blocked() {
  uint32_t previous = kNone;
  uint32_t index = blocked_.head;
  while (index != kNone) {
    if (write_back_sectors_ >= write_back_sectors_max_) return;
    to_cache(index);
    const uint32_t next = requests_[index].next;
    if (requests_[index].cut_sectors > 0) {
      previous = index;
    } else {
      (previous == kNone ? blocked_.head : requests_[previous].next) = next;
      if (next == kNone) blocked_.tail = previous;
    }
    index = next;
  }
}

// Whole pages are forgotten, and so are sectors of the others; the data is gone at once, also what
// is still on its way to flash.
void CacheManager::trim(uint32_t index) {
  counters_.sectors_trimmed += requests_[index].sectors;
  while (requests_[index].cut_sectors > 0) {
    const PagePart part = next_part(requests_[index]);
    pending_.supersede(part.lpa, part.sectors, pending_.next_version());
    if (const uint32_t slot = cache_.find(part.lpa); slot != kNone) {
      cache_.forget(slot, part.sectors);
    }
    mapper_.forget_sectors(part.lpa, part.sectors);
  }
  if (undo_log_.trims() >= kTrimsMax) flushes_.persist_trims();
}

// A protected cache outlives a power cut. A volatile one is written back.
void CacheManager::flush(uint32_t index) {
  if (!shared_.has_volatile_cache()) return link_.finish(index);
  requests_[index].pages_left = 1;
  write_back_dirty();
  flushes_.add(index);
}

void CacheManager::write_back_dirty() {
  Outgoing group;
  uint32_t pages = 0;
  cache_.for_each_dirty([&](uint32_t slot) {
    const PagePart part = to_write_back(cache_[slot]);
    const uint32_t program = shared_.new_transaction(Kind::kProgram, Source::kCache, part,
                                                     stream_of(domains_, part.lpa));
    transactions_[program].stamp = cache_[slot].stamp;
    cache_.set_status(slot, DataCache::Status::kWritingBack);
    group.programs.push(transactions_, program);
    group.sectors += part.count;
    if (++pages % kPagesPerGroup != 0) return;
    send_evicted(group);
    group = {};
  });
  send_evicted(group);
}

void CacheManager::add_dirty(std::map<uint32_t, uint64_t>& lost) {
  cache_.for_each_dirty(
      [&](uint32_t slot) { lost[cache_[slot].lpa] |= cache_[slot].dirty_sectors; });
}

void CacheManager::clear() {
  dram_.clear();
  cache_.clear();
  blocked_ = {};
  write_back_sectors_ = 0;
}

}  // namespace cairn::flash
