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

}  // namespace

std::vector<Leg> dropped_legs(const MapEntry& before, const MapEntry& after) {
  std::vector<Leg> dropped;
  for (size_t i = 0; i < before.size(); ++i) {
    const Leg leg = before.leg(i);
    const size_t there = after.find(leg.mega_vol);
    if (there == after.size() || after.leg(there).extent != leg.extent) dropped.push_back(leg);
  }
  return dropped;
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
  if (!is_new || id.value() >= record.next_volume) return contradiction();
  Volume& volume = place->second;
  volume.table.resize(record_of.extents);
  volume.record = std::move(record_of);
  count(volume, 1);
  return {};
}

void Pool::add(const ShareRecord& share) {
  const auto found = volumes_.find(share.id);
  if (found != volumes_.end()) found->second.terms = share.terms;
}

Result<void> Pool::add(VolumeId id, uint32_t chunk, const MapChunk& entries) {
  Volume* volume = this->volume(id);
  if (volume == nullptr) return contradiction();
  count(*volume, -1);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const MapEntry& entry = entries[i];
    if (!entry.is_mapped()) continue;
    const uint64_t extent = uint64_t{chunk} * kChunkEntries + i;
    if (extent >= volume->table.size() || volume->table[extent].is_mapped()) return contradiction();
    for (size_t leg = 0; leg < entry.size(); ++leg) {
      Member* drive = member(entry.leg(leg).mega_vol);
      if (drive == nullptr) return contradiction();
      const Result<void> used = drive->extents.use(entry.leg(leg).extent);
      if (!used) return used;
      ++drive->legs;
      ++volume->legs[entry.leg(leg).mega_vol];
    }
    volume->table[extent] = entry;
    ++volume->mapped;
  }
  count(*volume, 1);
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
  count(volume, -1);
  for (const Change& change : changes) {
    MapEntry& entry = volume.table[change.extent];
    for (const Leg& leg : dropped_legs(entry, change.entry)) {
      Member& drive = *member(leg.mega_vol);
      ++drive.cleaning;
      --drive.legs;
      --volume.legs[leg.mega_vol];
    }
    for (const Leg& leg : dropped_legs(change.entry, entry)) {
      ++member(leg.mega_vol)->legs;
      ++volume.legs[leg.mega_vol];
    }
    volume.mapped += change.entry.is_mapped() ? 1 : 0;
    volume.mapped -= entry.is_mapped() ? 1 : 0;
    entry = change.entry;
  }
  count(volume, 1);
}

void Pool::cleaned(MegaVolId id, const std::vector<uint32_t>& extents) {
  Member& drive = *member(id);
  drive.cleaning -= extents.size();
  for (const uint32_t extent : extents) drive.extents.give_back(extent);
}

void Pool::count(const Volume& volume, int64_t sign) {
  if (volume.record.is_leaving) return;
  const uint64_t extents = volume.record.extents - volume.mapped;
  unplaced_.extents[volume.record.replicas - 1] += static_cast<uint64_t>(sign) * extents;
}

std::vector<uint32_t> Pool::room(std::optional<MegaVolId> without) const {
  std::vector<uint32_t> free;
  for (const auto& [id, member] : members_) {
    if (member.info.is_leaving || id == without) continue;
    // What is being cleared is free shortly.
    free.push_back(member.extents.free() + static_cast<uint32_t>(member.cleaning));
  }
  return free;
}

bool Pool::can_promise(uint64_t extents, uint32_t replicas) const {
  Demand all = unplaced_;
  all.extents[replicas - 1] += extents;
  return is_feasible(room(std::nullopt), all);
}

bool Pool::can_spare(MegaVolId id) const {
  Demand all = unplaced_;
  all.extents[0] += members_.at(id).legs;
  return is_feasible(room(id), all);
}

Candidate Pool::candidate(const Member& member, const Volume& volume,
                          const LoadSource& loads) const {
  const auto of_volume = volume.legs.find(member.info.id);
  return {.id = member.info.id,
          .box = member.info.box,
          .rack = member.info.rack,
          .extents = member.info.extents - 1,
          .free = member.info.is_leaving ? 0 : member.extents.free(),
          .of_volume = of_volume == volume.legs.end() ? 0 : of_volume->second,
          .preference = member.info.preference,
          .load = loads.load(member.info.id)};
}

Result<MapEntry> Pool::reserve(Volume& volume, uint32_t extent, MapEntry entry, uint32_t count,
                               bool is_stale, const LoadSource& loads,
                               std::optional<MegaVolId> avoided) {
  std::set<MegaVolId> without;
  for (const auto& [id, member] : members_) {
    if (id == avoided || member.unfenced.contains(volume.record.id)) without.insert(id);
  }
  Result<std::vector<MegaVolId>> chosen =
      choose_drives(volume, extent, entry, count, loads, without);
  if (!chosen && without.size() > (avoided ? 1 : 0)) {
    without.clear();
    if (avoided) without.insert(*avoided);
    chosen = choose_drives(volume, extent, entry, count, loads, without);
  }
  if (!chosen) return fail(chosen.error());
  for (const MegaVolId id : *chosen) {
    Member& drive = *member(id);
    const std::optional<uint32_t> found = drive.extents.find_free();
    CHECK(found.has_value(), "a drive that was chosen has room");
    CHECK(drive.extents.use(*found).has_value());
    entry.add({.mega_vol = drive.info.id, .extent = *found, .is_stale = is_stale});
  }
  return entry;
}

Result<std::vector<MegaVolId>> Pool::choose_drives(Volume& volume, uint32_t extent,
                                                   const MapEntry& entry, uint32_t count,
                                                   const LoadSource& loads,
                                                   const std::set<MegaVolId>& avoided) const {
  std::vector<Candidate> candidates;
  std::vector<Candidate> taken;
  for (const auto& [id, member] : members_) {
    candidates.push_back(candidate(member, volume, loads));
    if (avoided.contains(id)) candidates.back().free = 0;
    if (entry.find(id) < entry.size()) taken.push_back(candidates.back());
  }
  Demand after = unplaced_;
  uint64_t& waiting = after.extents[volume.record.replicas - 1];
  if (!volume.table[extent].is_mapped() && waiting > 0) --waiting;
  ScoreMatrix matrix{.extent = extent, .rows = {}};
  const Result<std::vector<size_t>> chosen = choose({.candidates = candidates,
                                                     .taken = taken,
                                                     .weights = volume.record.weights,
                                                     .count = count,
                                                     .after = after},
                                                    &matrix.rows);
  volume.matrices.push_back(std::move(matrix));
  if (volume.matrices.size() > kMatricesKept) volume.matrices.pop_front();
  if (!chosen) return fail(chosen.error());
  std::vector<MegaVolId> drives;
  for (const size_t index : *chosen) drives.push_back(candidates[index].id);
  return drives;
}

void Pool::unreserve(const MapEntry& before, const MapEntry& after) {
  for (const Leg& leg : dropped_legs(after, before)) {
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

}  // namespace cairn::arbiter
