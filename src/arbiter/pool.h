// SPDX-License-Identifier: Apache-2.0
// Pool: what the metadata store says of drives, volumes and extents, as a value in memory. No I/O,
// no clock.
//
// A change is made in three steps: space is reserved here, new entries are committed to the store,
// and applied here. So the pool never shows what is not durable.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "arbiter/extent_map.h"
#include "arbiter/placement.h"
#include "arbiter/record_format.h"
#include "base/error.h"
#include "volume/map_entry_format.h"

namespace cairn::arbiter {

using volume::Leg;

inline constexpr size_t kMatricesKept = 8;  // of the last placements of a volume

// A drive of the pool.
struct Member {
  explicit Member(DriveRecord record)
      : info(std::move(record.info)), unfenced(std::move(record.unfenced)), extents(info.extents) {}
  MegaVolInfo info;
  Unfenced unfenced;      // who may still write to it although it lost what it had
  ExtentMap extents;      // used: by volumes, or to be cleared
  uint64_t cleaning = 0;  // of these: to be cleared
  uint64_t legs = 0;      // of volumes, each once
};

struct Volume {
  VolumeRecord record;
  share::Terms terms;
  std::vector<MapEntry> table;          // record.extents of them
  std::map<MegaVolId, uint32_t> legs;   // how many of them are on each drive
  uint64_t mapped = 0;                  // entries with legs
  std::map<uint32_t, MapEntry> copies;  // places where extents are being copied
  uint64_t to_copy = 0;                 // extents that are shared, and have no such place
  std::deque<ScoreMatrix> matrices;     // of its last placements, newest last
};

// One entry of a volume, as it is to be.
struct Change {
  uint32_t extent = 0;
  MapEntry entry;
  std::optional<MapEntry> copy;  // where it is being copied; none: as before
};

// Takes the extent, and its copy, away from a volume.
Change nothing_at(const Volume& volume, uint32_t extent);

class Pool {
 public:
  PoolRecord record;

  const std::map<MegaVolId, Member>& members() const { return members_; }
  const std::map<VolumeId, Volume>& volumes() const { return volumes_; }
  // Null: there is none.
  Member* member(MegaVolId id);
  Volume* volume(VolumeId id);
  Volume* volume(const std::string& name);

  // What the store has, one after the other, drives first. kCorrupt: it cannot be together with
  // what came before, an extent of a drive with two owners for instance.
  Result<void> add(const DriveRecord& drive);
  Result<void> add(VolumeRecord volume);
  // Of a volume that there is not it is left out: an earlier version forgot it.
  void add(const ShareRecord& share);
  Result<void> add(VolumeId volume, uint32_t chunk, const MapChunk& entries);
  Result<void> add_copies(VolumeId volume, uint32_t chunk, const MapChunk& entries);
  Result<void> add_cleaning(MegaVolId id, const std::vector<uint32_t>& extents);

  void remove(MegaVolId id) { members_.erase(id); }
  void remove(VolumeId id);
  // Extents beyond a new end, if any, have no legs.
  void set_record(Volume& volume, VolumeRecord record);
  // Legs that nobody has any more become extents to be cleared; new ones were reserve()d.
  void apply(Volume& volume, const std::vector<Change>& changes);
  // The legs that nobody has any more when a volume is changed so.
  std::vector<Leg> freed_by(const Volume& volume, const Change& change) const;
  // Whether others of its family have legs of the extent too.
  bool is_shared(const Volume& volume, uint32_t extent) const;
  // Volumes and snapshots that may share extents with it, itself among them.
  const std::vector<VolumeId>& family(const Volume& volume) const {
    return families_.at(volume.record.family);
  }
  // They were cleared, and are free.
  void cleaned(MegaVolId id, const std::vector<uint32_t>& extents);

  // Whether the drives that stay could hold all that is promised and so many extents more.
  bool can_promise(uint64_t extents, uint32_t replicas) const;
  // The same without a drive: whether it can leave.
  bool can_spare(MegaVolId id) const;

  // Legs for an extent that has `entry` already, on drives with room, as new ones of it; they are
  // used from now on, until apply() or unreserve(). None goes to `avoided`; none to drives where a
  // former holder was not fenced, as long as others have room. kNoSpace.
  Result<MapEntry> reserve(Volume& volume, uint32_t extent, MapEntry entry, uint32_t count,
                           bool is_stale, const LoadSource& loads,
                           std::optional<MegaVolId> avoided = {});
  void unreserve(const MapEntry& before, const MapEntry& after);

  // The chunk of a volume with changes to it.
  static MapChunk chunk_of(const Volume& volume, uint32_t chunk,
                           const std::vector<Change>& changes);
  // The same of its copies.
  static MapChunk copies_of(const Volume& volume, uint32_t chunk,
                            const std::vector<Change>& changes);

 private:
  // What drives that stay have free, but for one.
  std::vector<uint32_t> room(std::optional<MegaVolId> without) const;
  Candidate candidate(const Member& member, const Volume& volume, const LoadSource& loads) const;
  // Where the legs go that reserve() gives, by their drives.
  Result<std::vector<MegaVolId>> choose_drives(Volume& volume, uint32_t extent,
                                               const MapEntry& entry, uint32_t count,
                                               const LoadSource& loads,
                                               const std::set<MegaVolId>& avoided) const;

  // Adds what a volume may still ask for to unplaced_, or takes it away: around every change of it.
  void count(const Volume& volume, int64_t sign);
  // The same of all that may share extents with it, whose `to_copy` changes with it.
  void count_family(VolumeId family, int64_t sign);
  // Adds the extent to `to_copy` of those who share it, or takes it away: around every change of
  // it, within count_family().
  void count_shared(VolumeId family, uint32_t extent, int64_t sign);
  bool is_named_elsewhere(const Volume& volume, uint32_t extent, const Leg& leg) const;

  std::map<MegaVolId, Member> members_;
  std::map<VolumeId, Volume> volumes_;
  std::map<VolumeId, std::vector<VolumeId>> families_;
  Demand unplaced_;  // of volumes that are not leaving
};

}  // namespace cairn::arbiter
