// SPDX-License-Identifier: Apache-2.0
// What a power cut would undo in a drive whose cache is volatile.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "model/flash/blocks.h"
#include "model/flash/geometry.h"
#include "model/flash/pool.h"

namespace cairn::flash {

// A change of the mapping that flash does not know yet. Recovery finds the pages that were
// programmed, each with its logical page and its age in the bytes beside the data, so undoing such
// changes, newest first, leaves what recovery would find.
struct Undo {
  enum class Kind : uint8_t {
    kPlaced,       // user data that is being programmed
    kMoved,        // a page on its way to where the collector wants it
    kTranslation,  // a translation page that is being programmed
    kTrimmed,      // sectors that were given up
  };
  Kind kind = Kind::kPlaced;
  bool persisting = false;   // kTrimmed: a translation page that tells of it is being programmed
  uint32_t lpa = 0;          // kTranslation: the translation page
  uint32_t ppa = 0;          // kTrimmed: where the sectors were; else what is being programmed
  uint32_t old_ppa = 0;      // what it replaces, or kNone
  uint32_t erases = 0;       // kTrimmed: of the block, then
  uint64_t old_written = 0;  // the sectors of the page before
  uint64_t sectors = 0;      // those that are new, or trimmed
};

// Holds at most the programs under way and the trims of which no translation page tells. Blocks
// with pages that a cut would bring back are pinned. Stays empty if nothing would be undone.
class UndoLog {
 public:
  using Order = uint64_t;

  UndoLog(bool is_needed, const Geometry& geometry, Blocks& blocks)
      : is_needed_(is_needed), geometry_(geometry), blocks_(blocks) {}

  void add(const Undo& undo) {
    if (is_needed_) keep(undo);
  }
  // The page is on flash. Tells the victim whose erasure waited for that alone, or kNone.
  uint32_t programmed(uint32_t ppa) { return is_needed_ ? drop(ppa) : kNone; }

  size_t trims() const { return trims_; }
  Order end() const { return next_; }
  // Whether a trim from before `order` is left.
  bool has_trim_before(Order order) const {
    if (trims_ == 0) return false;
    for (auto entry = entries_.begin(); entry != entries_.end() && entry->first < order; ++entry) {
      if (entry->second.kind == Undo::Kind::kTrimmed) return true;
    }
    return false;
  }
  // Calls visit(undo) for each trim, which is dropped when the visit says true.
  template <class F>
  void drop_trims(F&& visit) {
    if (trims_ == 0) return;
    for (auto next = entries_.begin(); next != entries_.end();) {
      const auto entry = next++;
      if (entry->second.kind != Undo::Kind::kTrimmed || !visit(entry->second)) continue;
      entries_.erase(entry);
      --trims_;
    }
  }
  // Calls visit(undo) from the newest to the oldest, and forgets all.
  template <class F>
  void unwind(F&& visit) {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) visit(entry->second);
    entries_.clear();
    by_ppa_.clear();
    trims_ = 0;
  }

 private:
  void keep(const Undo& undo) {
    if (undo.kind == Undo::Kind::kTrimmed) {
      ++trims_;
    } else {
      by_ppa_[undo.ppa] = next_;
    }
    entries_.emplace_hint(entries_.end(), next_++, undo);
    if (undo.old_ppa != kNone) ++blocks_[geometry_.block_of(undo.old_ppa)].pins;
  }
  uint32_t drop(uint32_t ppa) {
    const auto known = by_ppa_.find(ppa);
    if (known == by_ppa_.end()) return kNone;
    const auto entry = entries_.find(known->second);
    const uint32_t old_ppa = entry->second.old_ppa;
    entries_.erase(entry);
    by_ppa_.erase(known);
    if (old_ppa == kNone) return kNone;
    const uint32_t block = geometry_.block_of(old_ppa);
    return --blocks_[block].pins == 0 && blocks_[block].collecting ? block : kNone;
  }

  const bool is_needed_;
  const Geometry& geometry_;
  Blocks& blocks_;
  std::map<Order, Undo> entries_;
  std::unordered_map<uint32_t, Order> by_ppa_;
  size_t trims_ = 0;
  Order next_ = 0;
};

}  // namespace cairn::flash
