// SPDX-License-Identifier: Apache-2.0
#include "model/flash/data_cache.h"

namespace cairn::flash {

void DataCache::touch(uint32_t slot) {
  if (slot == newest_) return;
  unlink(slot);
  link_newest(slot);
}

void DataCache::insert(uint32_t lpa, uint64_t sectors, Nanos stamp, Status status) {
  const uint32_t index = slots_.take();
  Slot& slot = slots_[index];
  slot.lpa = lpa;
  slot.sectors = sectors;
  slot.stamp = stamp;
  slot.status = status;
  if (status == Status::kDirty) {
    ++dirty_;
    slot.dirty_sectors = sectors;
  }
  pages_[lpa].cache_slot_plus_one = index + 1;
  link_newest(index);
  ++used_;
}

void DataCache::update(uint32_t index, uint64_t sectors, Nanos stamp) {
  Slot& slot = slots_[index];
  slot.sectors |= sectors;
  if (stamp > slot.stamp) slot.stamp = stamp;
  set_status(index, Status::kDirty);
  slot.dirty_sectors |= sectors;
  touch(index);
}

void DataCache::set_status(uint32_t index, Status status) {
  Slot& slot = slots_[index];
  if (slot.status == Status::kDirty) --dirty_;
  slot.status = status;
  if (status == Status::kDirty) {
    ++dirty_;
  } else {
    slot.dirty_sectors = 0;
  }
}

void DataCache::forget(uint32_t index, uint64_t sectors) {
  Slot& slot = slots_[index];
  slot.sectors &= ~sectors;
  slot.dirty_sectors &= ~sectors;
  if (slot.sectors == 0) return remove(index);
  if (slot.status == Status::kDirty && slot.dirty_sectors == 0) set_status(index, Status::kClean);
}

void DataCache::clear() {
  while (used_ > 0) remove(newest_);
}

void DataCache::remove(uint32_t index) {
  const Slot& slot = slots_[index];
  if (slot.status == Status::kDirty) --dirty_;
  pages_[slot.lpa].cache_slot_plus_one = 0;
  unlink(index);
  slots_.give_back(index);
  --used_;
}

DataCache::Slot DataCache::evict() {
  const Slot evicted = slots_[oldest_];
  remove(oldest_);
  return evicted;
}

bool DataCache::evict_dirty(Slot& evicted) {
  if (dirty_ == 0) return false;
  evicted = evict();
  return evicted.status == Status::kDirty;
}

void DataCache::unlink(uint32_t index) {
  const Slot& slot = slots_[index];
  (slot.newer == kNone ? newest_ : slots_[slot.newer].next) = slot.next;
  (slot.next == kNone ? oldest_ : slots_[slot.next].newer) = slot.newer;
}

void DataCache::link_newest(uint32_t index) {
  Slot& slot = slots_[index];
  slot.next = newest_;
  slot.newer = kNone;
  (newest_ == kNone ? oldest_ : slots_[newest_].newer) = index;
  newest_ = index;
}

}  // namespace cairn::flash
