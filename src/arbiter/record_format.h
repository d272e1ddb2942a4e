// SPDX-License-Identifier: Apache-2.0
// How pools and volumes lie in the metadata store. All keys begin with "flint/":
//
//   flint/pool                          the pool
//   flint/mega_vol/NNN                  a drive of it, by its number in hexadecimal digits
//   flint/volume/NAME                   a volume
//   flint/share/NAME                    what a volume was promised of drives' bandwidth; absent if
//                                       that is the usual
//   flint/map/IIIIIIIIIIIIIIII/CCCCCCCC entries of a volume, kChunkEntries of them, by the volume's
//                                       id and the chunk's number; a chunk without extents is
//                                       absent
//   flint/copy/IIIIIIIIIIIIIIII/CCCCCCCC places where extents of a volume are being copied, in the
//                                       same form
//   flint/cleaning/NNN/SSSSSSSSSSSSSSSS extents of a drive that are to be cleared before they are
//                                       free, by a number that grows
//   flint/leader, flint/writer          who leads (meta/election.h), and who may still write to
//                                       drives for having led
//
// A value:
//   0   kind    one byte: 1 pool, 2 drive, 3 volume, 4 map, 5 cleaning, 16 share
//   1   version one byte: 2 of a volume, 1 of all else. A volume of version 1, which ends before
//       its family, is read too: it has no snapshots
//   2   zero    two bytes
//   4   CRC32C of the kind, the version and the body   four bytes
//   8   the body: numbers little-endian, texts with a length of four bytes before them
//
// That of a drive ends, if hosts were not fenced there, with how many of them (four bytes), and for
// each the volume that it had and its name. Who does not know of these refuses such a record.
//
// All of it is read as hostile input. An extent of a drive is used if a map, a copy or a cleaning
// names it, and free otherwise; nothing else says so, so nothing can disagree. Several maps may
// name it: those of one family, for the same extent of their volumes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "share/auction.h"
#include "volume/map_entry_format.h"
#include "volume/types.h"

namespace cairn::arbiter {

using volume::MapEntry;
using volume::MegaVolId;
using volume::MegaVolInfo;
using volume::VolumeId;

inline constexpr uint32_t kChunkEntries = 256;
inline constexpr size_t kCleaningMax = 4096;  // extents in one record

struct PoolRecord {
  Uuid uuid{};
  uint64_t extent_bytes = volume::kExtentBytes;
  uint64_t next_volume = 1;    // the id of the next volume
  uint16_t next_mega_vol = 0;  // where the search for the number of the next drive begins
  friend bool operator==(const PoolRecord&, const PoolRecord&) = default;
};

// Hosts that could not be fenced at a drive when they lost what they had: each may still write to
// it. By the volume that it had, or by kOfArbiters if it led. There is one for each volume: a later
// holder does not come to a drive where the one before it was not fenced.
using Unfenced = std::map<VolumeId, std::string>;
inline constexpr VolumeId kOfArbiters{0};

struct DriveRecord {
  MegaVolInfo info;
  Unfenced unfenced;
  friend bool operator==(const DriveRecord&, const DriveRecord&) = default;
};

struct VolumeRecord {
  VolumeId id;
  std::string name;
  uint32_t extents = 0;  // the log's included
  uint32_t replicas = 1;
  volume::Weights weights;
  volume::Epoch epoch;
  std::string holder;        // the client that has it open, or had when it was lost; empty: nobody
  bool is_clean = true;      // the last holder closed it
  bool is_leaving = false;   // it is being destroyed, or not whole yet
  VolumeId family;           // the first of those that may have extents together; itself, mostly
  VolumeId origin;           // of a snapshot its volume, of a clone its snapshot; 0: none
  bool is_snapshot = false;  // it never changes
  uint64_t made = 0;         // seconds since 1970; 0: not known
  friend bool operator==(const VolumeRecord&, const VolumeRecord&) = default;
};

// Of the volume of that name and id; of another id it means nothing.
struct ShareRecord {
  VolumeId id;
  share::Terms terms;
  friend bool operator==(const ShareRecord&, const ShareRecord&) = default;
};

using MapChunk = std::vector<MapEntry>;  // kChunkEntries of them

inline constexpr const char* kPrefix = "flint/";
inline constexpr const char* kPoolKey = "flint/pool";
inline constexpr const char* kLeaderKey = "flint/leader";
inline constexpr const char* kWriterKey = "flint/writer";
inline constexpr const char* kMegaVolPrefix = "flint/mega_vol/";
inline constexpr const char* kVolumePrefix = "flint/volume/";
inline constexpr const char* kSharePrefix = "flint/share/";
inline constexpr const char* kMapPrefix = "flint/map/";
inline constexpr const char* kCopyPrefix = "flint/copy/";
inline constexpr const char* kCleaningPrefix = "flint/cleaning/";

std::string mega_vol_key(MegaVolId id);
std::string volume_key(const std::string& name);
std::string share_key(const std::string& name);
std::string map_key(VolumeId volume, uint32_t chunk);
std::string copy_key(VolumeId volume, uint32_t chunk);
std::string cleaning_prefix(MegaVolId id);
std::string cleaning_key(MegaVolId id, uint64_t number);

// What a key says: of a map or of copies. kCorrupt.
struct MapKey {
  VolumeId volume;
  uint32_t chunk = 0;
};
Result<MapKey> parse_map_key(const std::string& key);
struct CleaningKey {
  MegaVolId mega_vol;
  uint64_t number = 0;
};
Result<CleaningKey> parse_cleaning_key(const std::string& key);

std::string encode(const PoolRecord& pool);
std::string encode(const DriveRecord& drive);
std::string encode(const VolumeRecord& volume);
std::string encode(const ShareRecord& share);
std::string encode(const MapChunk& chunk);
std::string encode_cleaning(const std::vector<uint32_t>& extents);

// kCorrupt: damaged, or not such a record. kUnsupported: of another version.
Result<PoolRecord> decode_pool(Bytes bytes);
Result<DriveRecord> decode_drive(Bytes bytes);
Result<VolumeRecord> decode_volume(Bytes bytes);
Result<ShareRecord> decode_share(Bytes bytes);
Result<MapChunk> decode_map(Bytes bytes);
Result<std::vector<uint32_t>> decode_cleaning(Bytes bytes);

}  // namespace cairn::arbiter
