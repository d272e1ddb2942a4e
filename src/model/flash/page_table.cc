// SPDX-License-Identifier: Apache-2.0
#include "model/flash/page_table.h"

#include <cmath>

#include "base/portable_math.h"

namespace cairn::flash {

namespace {

// An entry has numbers of pages, and a bit per sector that was written.
uint32_t entry_bytes(const Parameters& p, uint32_t page_numbers) {
  const double bits =
      page_numbers * binary_log(static_cast<double>(p.physical_pages())) + p.sectors_per_page();
  return static_cast<uint32_t>(std::ceil(bits / 8));
}

}  // namespace

uint32_t stored_entry_bytes(const Parameters& parameters) { return entry_bytes(parameters, 1); }

uint32_t cached_entry_bytes(const Parameters& parameters) { return entry_bytes(parameters, 2); }

uint32_t entries_per_translation_page(const Parameters& parameters) {
  return parameters.page_bytes / stored_entry_bytes(parameters);
}

uint32_t MappingCache::insert(uint32_t lpa, uint32_t translation_page, bool waiting) {
  const uint32_t index = slots_.take();
  Slot& slot = slots_[index];
  slot.lpa = lpa;
  slot.translation_page = translation_page;
  slot.waiting = waiting;
  slot.sibling = first_of(translation_page);
  if (slot.sibling != kNone) slots_[slot.sibling].elder = index;
  first_of_page_[translation_page] = index + 1;
  pages_[lpa].mapping_slot_plus_one = index + 1;
  link_newest(index);
  ++used_;
  return index;
}

void MappingCache::touch(uint32_t slot) {
  if (slot == newest_) return;
  unlink(slot);
  link_newest(slot);
}

uint32_t MappingCache::evict(bool& dirty) {
  uint32_t index = oldest_;
  while (index != kNone && slots_[index].waiting) index = slots_[index].newer;
  if (index == kNone) return kNone;
  const uint32_t lpa = slots_[index].lpa;
  dirty = slots_[index].dirty;
  remove(index);
  return lpa;
}

void MappingCache::clear() {
  while (used_ > 0) remove(newest_);
}

void MappingCache::unlink(uint32_t index) {
  const Slot& slot = slots_[index];
  (slot.newer == kNone ? newest_ : slots_[slot.newer].next) = slot.next;
  (slot.next == kNone ? oldest_ : slots_[slot.next].newer) = slot.newer;
}

void MappingCache::link_newest(uint32_t index) {
  Slot& slot = slots_[index];
  slot.next = newest_;
  slot.newer = kNone;
  (newest_ == kNone ? oldest_ : slots_[newest_].newer) = index;
  newest_ = index;
}

void MappingCache::remove(uint32_t index) {
  const Slot& slot = slots_[index];
  unlink(index);
  if (slot.elder == kNone) {
    first_of_page_[slot.translation_page] = slot.sibling + 1;
  } else {
    slots_[slot.elder].sibling = slot.sibling;
  }
  if (slot.sibling != kNone) slots_[slot.sibling].elder = slot.elder;
  pages_[slot.lpa].mapping_slot_plus_one = 0;
  slots_.give_back(index);
  --used_;
}

}  // namespace cairn::flash
