// SPDX-License-Identifier: Apache-2.0
// Table: where the extents of a volume lie, as its holder knows it: what the arbiter said, and legs
// that lack writes since, of which the arbiter is not told yet.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "service/common/region_set.h"
#include "volume/arbiter_link.h"
#include "volume/map_entry_format.h"

namespace cairn::volume {

class Table {
 public:
  uint32_t extents() const { return static_cast<uint32_t>(entries_.size()); }
  void resize(uint32_t extents) {
    entries_.resize(extents);
    drive::RegionSet shared(extents);
    for (size_t i = shared_.next(0); i < shared_.size(); i = shared_.next(i + 1)) shared.add(i);
    shared_ = std::move(shared);
  }
  // As the arbiter has it.
  const MapEntry& operator[](uint32_t extent) const { return entries_[extent]; }
  size_t bytes() const { return entries_.capacity() * sizeof(MapEntry) + shared_.size() / 8; }

  // What the arbiter said. What it was told of a leg by now needs no telling.
  void apply(const Mapping& mapping) {
    if (mapping.extent >= entries_.size()) return;
    entries_[mapping.extent] = mapping.entry;
    shared_.remove(mapping.extent);
    if (mapping.is_shared) shared_.add(mapping.extent);
    std::erase_if(unreported_, [&](const auto& each) {
      if (each.first != mapping.extent) return false;
      const size_t leg = mapping.entry.find(each.second);
      return leg == mapping.entry.size() || mapping.entry.leg(leg).is_stale;
    });
  }

  // Others have the extent too, as far as is known: it is not written in its place.
  bool is_shared(uint32_t extent) const { return shared_.has(extent); }
  // All that have a place, until the arbiter says otherwise; the log is nobody else's.
  void share_all() {
    for (uint32_t i = kFirstDataExtent; i < extents(); ++i) {
      if (entries_[i].is_mapped()) shared_.add(i);
    }
  }
  // The extent gets other legs: what the ones before lacked needs no telling.
  void forget(uint32_t extent) {
    std::erase_if(unreported_, [&](const auto& each) { return each.first == extent; });
  }

  // The leg lacks a write: it is not read from now on. False: that is known.
  bool distrust(uint32_t extent, MegaVolId mega_vol) {
    const size_t leg = entries_[extent].find(mega_vol);
    if (leg == entries_[extent].size() || entries_[extent].leg(leg).is_stale) return false;
    return unreported_.emplace(extent, mega_vol).second;
  }
  // As of now: whoever has waited asks again.
  bool is_trusted(uint32_t extent, MegaVolId mega_vol) const {
    const MapEntry& entry = entries_[extent];
    const size_t leg = entry.find(mega_vol);
    return leg < entry.size() && !entry.leg(leg).is_stale &&
           (unreported_.empty() || !unreported_.contains({extent, mega_vol}));
  }
  size_t trusted(uint32_t extent) const {
    const MapEntry& entry = entries_[extent];
    size_t count = 0;
    for (size_t i = 0; i < entry.size(); ++i)
      count += is_trusted(extent, entry.leg(i).mega_vol) ? 1 : 0;
    return count;
  }
  // Of legs that are distrusted, at most `max`.
  std::vector<LegReport> unreported(size_t max) const {
    std::vector<LegReport> legs;
    for (const auto& [extent, mega_vol] : unreported_) {
      if (legs.size() == max) break;
      legs.push_back({.extent = extent, .mega_vol = mega_vol, .is_stale = true});
    }
    return legs;
  }
  bool has_unreported() const { return !unreported_.empty(); }

 private:
  std::vector<MapEntry> entries_;
  drive::RegionSet shared_;
  std::set<std::pair<uint32_t, MegaVolId>> unreported_;
};
static_assert(sizeof(MapEntry) == 16, "a TiB of extents takes 8 MiB, and a bit each");

}  // namespace cairn::volume
