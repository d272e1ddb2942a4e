// SPDX-License-Identifier: Apache-2.0
#include "arbiter/pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::arbiter {

namespace {

std::unexpected<Error> contradiction() {
  return fail(Errc::kCorrupt, "the records of the pool contradict each other");
}

bool has_leg(const MapEntry& entry, const Leg& leg) {
  const size_t index = entry.find(leg.mega_vol);
  return index < entry.size() && entry.leg(index).extent == leg.extent;
}

MapEntry copy_at(const Volume& volume, uint32_t extent) {
  const auto found = volume.copies.find(extent);
  return found == volume.copies.end() ? MapEntry() : found->second;
}

// Of an extent and its copy.
std::vector<Leg> legs_of(const MapEntry& entry, const MapEntry& copy) {
  std::vector<Leg> legs;
  legs.reserve(entry.size() + copy.size());
  for (size_t i = 0; i < entry.size(); ++i) legs.push_back(entry.leg(i));
  for (size_t i = 0; i < copy.size(); ++i) legs.push_back(copy.leg(i));
  return legs;
}

// Those of `some` that others do not have.
std::vector<Leg> missing_legs(std::vector<Leg> some, const std::vector<Leg>& others) {
  std::erase_if(some, [&](const Leg& leg) {
    return std::ranges::any_of(others, [&](const Leg& other) {
      return other.mega_vol == leg.mega_vol && other.extent == leg.extent;
    });
  });
  return some;
}

}  // namespace

Change nothing_at(const Volume& volume, uint32_t extent) {
  Change change{.extent = extent, .entry = {}, .copy = {}};
  if (volume.copies.contains(extent)) change.copy = MapEntry();
  return change;
}

Member* Pool::member(MegaVolId id) {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

Volume* Pool::volume(VolumeId id) {
  const auto found = volumes_.find(id);
  return found == volumes_.end() ? nullptr : &found->second;
}

Volume* Pool::volume(const std::string& name) {
  const auto found =
      std::ranges::find(volumes_, name, [](const auto& each) { return each.second.record.name; });
  return found == volumes_.end() ? nullptr : &found->second;
}

Result<void> Pool::add(const DriveRecord& drive) {
  const MegaVolId id = drive.info.id;
  if (!members_.try_emplace(id, drive).second) return contradiction();
  return {};
}

Result<void> Pool::add(VolumeRecord record_of) {
  const VolumeId id = record_of.id;
  const auto [place, is_new] = volumes_.try_emplace(id);
  if (!is_new || id.value() >= record.next_volume || record_of.family > id) return contradiction();
  Volume& volume = place->second;
  volume.table.resize(record_of.extents);
  volume.record = std::move(record_of);
  families_[volume.record.family].push_back(id);
  count(volume, 1);
  return {};
}

void Pool::add(const ShareRecord& share) {
  const auto found = volumes_.find(share.id);
  if (found != volumes_.end()) found->second.terms = share.terms;
}

void Pool::remove(VolumeId id) {
  const auto family = families_.find(volumes_.at(id).record.family);
  std::erase(family->second, id);
  if (family->second.empty()) families_.erase(family);
  volumes_.erase(id);
}

Result<void> Pool::add(VolumeId id, uint32_t chunk, const MapChunk& entries) {
  Volume* volume = this->volume(id);
  if (volume == nullptr) return contradiction();
  const VolumeId family = volume->record.family;
  count_family(family, -1);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const MapEntry& entry = entries[i];
    if (!entry.is_mapped()) continue;
    const uint64_t at = uint64_t{chunk} * kChunkEntries + i;
    if (at >= volume->table.size() || volume->table[at].is_mapped()) return contradiction();
    const auto extent = static_cast<uint32_t>(at);
    count_shared(family, extent, -1);
    for (size_t index = 0; index < entry.size(); ++index) {
      const Leg leg = entry.leg(index);
      Member* drive = member(leg.mega_vol);
      if (drive == nullptr) return contradiction();
      ++volume->legs[leg.mega_vol];
      if (is_named_elsewhere(*volume, extent, leg)) continue;
      const Result<void> used = drive->extents.use(leg.extent);
      if (!used) return used;
      ++drive->legs;
    }
    volume->table[extent] = entry;
    ++volume->mapped;
    count_shared(family, extent, 1);
  }
  count_family(family, 1);
  return {};
}

Result<void> Pool::add_copies(VolumeId id, uint32_t chunk, const MapChunk& entries) {
  Volume* volume = this->volume(id);
  if (volume == nullptr) return contradiction();
  const VolumeId family = volume->record.family;
  count_family(family, -1);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const MapEntry& entry = entries[i];
    if (!entry.is_mapped()) continue;
    const uint64_t at = uint64_t{chunk} * kChunkEntries + i;
    const auto extent = static_cast<uint32_t>(at);
    if (at >= volume->table.size() || !volume->table[extent].is_mapped() ||
        volume->copies.contains(extent)) {
      return contradiction();
    }
    for (size_t index = 0; index < entry.size(); ++index) {
      Member* drive = member(entry.leg(index).mega_vol);
      if (drive == nullptr) return contradiction();
      const Result<void> used = drive->extents.use(entry.leg(index).extent);
      if (!used) return used;
      ++drive->legs;
      ++volume->legs[entry.leg(index).mega_vol];
    }
    count_shared(family, extent, -1);
    volume->copies[extent] = entry;
    count_shared(family, extent, 1);
  }
  count_family(family, 1);
  return {};
}

Result<void> Pool::add_cleaning(MegaVolId id, const std::vector<uint32_t>& extents) {
  Member* drive = member(id);
  if (drive == nullptr) return contradiction();
  for (const uint32_t extent : extents) {
    const Result<void> used = drive->extents.use(extent);
    if (!used) return used;
    ++drive->cleaning;
  }
  return {};
}

void Pool::set_record(Volume& volume, VolumeRecord changed) {
  count(volume, -1);
  for (size_t i = changed.extents; i < volume.table.size(); ++i) {
    CHECK(!volume.table[i].is_mapped());
  }
  volume.table.resize(changed.extents);
  volume.record = std::move(changed);
  count(volume, 1);
}

void Pool::apply(Volume& volume, const std::vector<Change>& changes) {
  count_family(volume.record.family, -1);
  for (const Change& change : changes) {
    count_shared(volume.record.family, change.extent, -1);
    for (const Leg& leg : freed_by(volume, change)) {
      Member& drive = *member(leg.mega_vol);
      ++drive.cleaning;
      --drive.legs;
    }
    MapEntry& entry = volume.table[change.extent];
    const MapEntry copy = copy_at(volume, change.extent);
    const std::vector<Leg> before = legs_of(entry, copy);
    const std::vector<Leg> after = legs_of(change.entry, change.copy.value_or(copy));
    for (const Leg& leg : missing_legs(before, after)) --volume.legs[leg.mega_vol];
    for (const Leg& leg : missing_legs(after, before)) {
      ++member(leg.mega_vol)->legs;
      ++volume.legs[leg.mega_vol];
    }
    volume.mapped += change.entry.is_mapped() ? 1 : 0;
    volume.mapped -= entry.is_mapped() ? 1 : 0;
    entry = change.entry;
    if (change.copy && change.copy->is_mapped()) {
      volume.copies[change.extent] = *change.copy;
    } else if (change.copy) {
      volume.copies.erase(change.extent);
    }
    count_shared(volume.record.family, change.extent, 1);
  }
  count_family(volume.record.family, 1);
}

std::vector<Leg> Pool::freed_by(const Volume& volume, const Change& change) const {
  const MapEntry copy = copy_at(volume, change.extent);
  std::vector<Leg> freed = missing_legs(legs_of(volume.table[change.extent], copy),
                                        legs_of(change.entry, change.copy.value_or(copy)));
  std::erase_if(freed,
                [&](const Leg& leg) { return is_named_elsewhere(volume, change.extent, leg); });
  return freed;
}

bool Pool::is_named_elsewhere(const Volume& volume, uint32_t extent, const Leg& leg) const {
  return std::ranges::any_of(family(volume), [&](VolumeId id) {
    const Volume& other = volumes_.at(id);
    return &other != &volume && extent < other.table.size() && has_leg(other.table[extent], leg);
  });
}

bool Pool::is_shared(const Volume& volume, uint32_t extent) const {
  if (family(volume).size() < 2) return false;
  const MapEntry& entry = volume.table[extent];
  for (size_t i = 0; i < entry.size(); ++i) {
    if (is_named_elsewhere(volume, extent, entry.leg(i))) return true;
  }
  return false;
}

void Pool::count_family(VolumeId family, int64_t sign) {
  for (const VolumeId id : families_.at(family)) count(volumes_.at(id), sign);
}

// Of all at once: a family may be large, and a snapshot has many extents.
void Pool::count_shared(VolumeId family, uint32_t extent, int64_t sign) {
  const std::vector<VolumeId>& ids = families_.at(family);
  if (ids.size() < 2) return;
  const auto number_of = [](const Leg& leg) {
    return uint64_t{leg.mega_vol.value()} << 32 | leg.extent;
  };
  std::vector<uint64_t> named;
  for (const VolumeId id : ids) {
    const Volume& each = volumes_.at(id);
    const MapEntry entry = extent < each.table.size() ? each.table[extent] : MapEntry();
    for (size_t i = 0; i < entry.size(); ++i) named.push_back(number_of(entry.leg(i)));
  }
  std::ranges::sort(named);
  for (const VolumeId id : ids) {
    Volume& each = volumes_.at(id);
    if (extent >= each.table.size() || each.copies.contains(extent)) continue;
    const MapEntry& entry = each.table[extent];
    for (size_t i = 0; i < entry.size(); ++i) {
      if (std::ranges::equal_range(named, number_of(entry.leg(i))).size() < 2) continue;
      each.to_copy += static_cast<uint64_t>(sign);
      break;
    }
  }
}

void Pool::cleaned(MegaVolId id, const std::vector<uint32_t>& extents) {
  Member& drive = *member(id);
  drive.cleaning -= extents.size();
  for (const uint32_t extent : extents) drive.extents.give_back(extent);
}

void Pool::count(const Volume& volume, int64_t sign) {
  if (volume.record.is_leaving) return;
  // A snapshot may need space for the log of whoever reads it.
  const uint64_t log = volume.table[volume::kLogExtent].is_mapped() ? 0 : 1;
  const uint64_t extents =
      volume.record.is_snapshot ? log : volume.record.extents - volume.mapped + volume.to_copy;
  unplaced_.extents[volume.record.replicas - 1] += static_cast<uint64_t>(sign) * extents;
}

void Pool::unreserve(const MapEntry& before, const MapEntry& after) {
  for (const Leg& leg : missing_legs(legs_of(after, {}), legs_of(before, {}))) {
    member(leg.mega_vol)->extents.give_back(leg.extent);
  }
}

MapChunk Pool::chunk_of(const Volume& volume, uint32_t chunk, const std::vector<Change>& changes) {
  MapChunk entries(kChunkEntries);
  const uint64_t first = uint64_t{chunk} * kChunkEntries;
  for (uint32_t i = 0; i < kChunkEntries && first + i < volume.table.size(); ++i) {
    entries[i] = volume.table[first + i];
  }
  for (const Change& change : changes) {
    if (change.extent / kChunkEntries == chunk)
      entries[change.extent % kChunkEntries] = change.entry;
  }
  return entries;
}

MapChunk Pool::copies_of(const Volume& volume, uint32_t chunk, const std::vector<Change>& changes) {
  MapChunk entries(kChunkEntries);
  const auto first = volume.copies.lower_bound(chunk * kChunkEntries);
  for (auto each = first; each != volume.copies.end() && each->first / kChunkEntries == chunk;
       ++each) {
    entries[each->first % kChunkEntries] = each->second;
  }
  for (const Change& change : changes) {
    if (change.copy && change.extent / kChunkEntries == chunk) {
      entries[change.extent % kChunkEntries] = *change.copy;
    }
  }
  return entries;
}

}  // namespace cairn::arbiter
