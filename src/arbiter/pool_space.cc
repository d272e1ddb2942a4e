// SPDX-License-Identifier: Apache-2.0
// What a pool can still promise, and which drives get an extent.
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "arbiter/pool.h"
#include "base/check.h"

namespace cairn::arbiter {

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
          .load = loads.load_for(member.info.id, volume.record.name)};
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
  // What is placed first, or copied, was promised; another leg was not.
  if (!entry.is_mapped() && waiting > 0) --waiting;
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

}  // namespace cairn::arbiter
