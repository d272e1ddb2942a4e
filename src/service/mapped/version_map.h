// SPDX-License-Identifier: Apache-2.0
// VersionMap: where each chunk of a drive lies now, lay when a version was taken, and lies in the
// clones of versions. Memory only; SnapshotDrive keeps it on a drive.
//
// Time is counted in epochs. Taking a version ends one: the version has the epoch's number, and
// sees each chunk as the newest entry that was born in it or before. An entry holds a unit or is a
// hole. The newest entry of each chunk is in a table; an older one is kept, in the history, as long
// as a version sees it. A clone has entries of its own over the version it stands on. So every unit
// has exactly one entry, taking a version costs nothing, and a unit is free when its entry goes.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "service/mapped/chunk_table.h"
#include "service/mapped/snapshot_format.h"

namespace cairn::drive {

class VersionMap {
 public:
  // Units count from 1.
  static constexpr uint32_t kHole = 0;
  static constexpr size_t kNameMax = kSnapshotNameMax;
  static constexpr size_t kClonesMax = 16;
  using Freed = std::vector<uint32_t>;

  struct Limits {
    uint64_t chunks = 0;
    uint64_t versions = 0;
    uint64_t clone_holes = 0;
  };
  struct Entry {
    uint32_t unit = kHole;
    uint32_t born = 0;  // the epoch; 0: never
  };
  struct Clone {
    uint32_t base = 0;  // the version it stands on
    std::string name;
    ChunkTable<uint32_t> units;  // kUnset: as in the version; kCloneHole
  };
  static constexpr uint32_t kUnset = 0;
  static constexpr uint32_t kCloneHole = UINT32_MAX;

  explicit VersionMap(const Limits& limits) : limits_(limits), newest_(limits.chunks) {}

  uint64_t chunks() const { return limits_.chunks; }
  uint32_t epoch() const { return epoch_; }
  const std::map<uint32_t, std::string>& versions() const { return versions_; }
  const std::map<uint32_t, Clone>& clones() const { return clones_; }
  uint64_t kept() const { return history_.size(); }

  // The unit, or kHole.
  uint32_t find(uint64_t chunk) const { return newest_.get(chunk).unit; }
  uint32_t find_at(uint64_t chunk, uint32_t version) const;
  uint32_t find_in(const Clone& clone, uint64_t chunk) const;
  // Whether no version sees the chunk's newest unit.
  bool is_own(uint64_t chunk) const { return newest_.get(chunk).born > last_version_; }
  bool was_born_after(uint64_t chunk, uint32_t version) const {
    return newest_.get(chunk).born > version;
  }
  bool is_own_in(const Clone& clone, uint64_t chunk) const;
  // Whether a clone's chunk may become a hole, for which there is room for so many only.
  bool has_room_for_hole() const { return clone_holes_ < limits_.clone_holes; }

  // By number or name. kNotFound.
  Result<uint32_t> version(std::string_view name) const;
  Result<uint32_t> clone(std::string_view name) const;

  // What follows changes the map, or refuses and changes nothing. Units that nobody needs any more
  // are added to `freed`. kInvalid: numbers or names that cannot be; kNotFound; kExists; kLimit;
  // kDenied: a clone stands on a version that would go.
  Result<void> set(uint64_t chunk, uint32_t unit, Freed& freed);
  Result<void> set_in(uint32_t clone, uint64_t chunk, uint32_t unit, Freed& freed);
  Result<uint32_t> take(std::string_view name);
  Result<void> remove(uint32_t version, Freed& freed);
  // The drive is as it was at that version; later versions are removed.
  Result<void> rollback(uint32_t version, Freed& freed);
  Result<uint32_t> make_clone(uint32_t version, std::string_view name);
  Result<void> drop_clone(uint32_t clone, Freed& freed);

  // Everything there is, and back: the records of a checkpoint, in their order. kCorrupt: they
  // make no sense.
  template <class F>
  void save_versions(F f) const;  // f(SnapshotRecord, name)
  // The chunks from `chunk` on, a bounded number. Returns where the next part begins.
  template <class F>
  uint64_t save_chunks(uint64_t chunk, F f) const;
  Result<void> restore(const SnapshotRecord& saved, std::string_view name);

 private:
  struct Key {
    uint64_t chunk = 0;
    uint32_t born = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using History = std::map<Key, uint32_t>;

  bool has_version_in(uint32_t from, uint32_t to) const {
    const auto found = versions_.lower_bound(from);
    return found != versions_.end() && found->first < to;
  }
  bool is_kept(uint64_t chunk) const {
    const auto found = history_.lower_bound({chunk, 0});
    return found != history_.end() && found->first.chunk == chunk;
  }
  Result<void> check_name(std::string_view name) const;
  bool has_clone_on(uint32_t from, uint32_t to) const;
  void find_last();

  Limits limits_;
  uint32_t epoch_ = 1;
  uint32_t last_version_ = 0;
  uint32_t next_clone_ = 1;
  uint64_t clone_holes_ = 0;
  std::map<uint32_t, std::string> versions_;
  std::map<uint32_t, Clone> clones_;
  ChunkTable<Entry> newest_;
  History history_;  // entries that a version sees
};

template <class F>
void VersionMap::save_versions(F f) const {
  f(SnapshotRecord{SnapshotRecord::kEpochs, 0, next_clone_, epoch_}, std::string_view());
  for (const auto& [version, name] : versions_) {
    f(SnapshotRecord{SnapshotRecord::kVersion, 0, 0, version}, name);
  }
  for (const auto& [number, clone] : clones_) {
    f(SnapshotRecord{SnapshotRecord::kClone, clone.base, 0, number}, clone.name);
  }
}

template <class F>
uint64_t VersionMap::save_chunks(uint64_t chunk, F f) const {
  uint64_t first = newest_.skip(chunk);
  for (const auto& [number, clone] : clones_) first = std::min(first, clone.units.skip(chunk));
  const uint64_t end = std::min(newest_.end_of_part(first), limits_.chunks);
  auto kept = history_.lower_bound({first, 0});
  for (; first < end; ++first) {
    const auto at = static_cast<uint32_t>(first);
    const bool has_kept = kept != history_.end() && kept->first.chunk == first;
    for (; kept != history_.end() && kept->first.chunk == first; ++kept) {
      f(SnapshotRecord{SnapshotRecord::kKept, at, kept->second, kept->first.born},
        std::string_view());
    }
    const Entry newest = newest_.get(first);
    if (newest.unit != kHole || has_kept) {
      f(SnapshotRecord{SnapshotRecord::kNewest, at, newest.unit, newest.born}, std::string_view());
    }
    for (const auto& [number, clone] : clones_) {
      const uint32_t unit = clone.units.get(first);
      if (unit == kUnset) continue;
      f(SnapshotRecord{SnapshotRecord::kInClone, at, unit, number}, std::string_view());
    }
  }
  return end;
}

}  // namespace cairn::drive
