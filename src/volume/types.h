// SPDX-License-Identifier: Apache-2.0
// What volumes, their pool and their drives are called, how large they may be, and how extents are
// placed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "base/uuid.h"

namespace cairn::volume {

using VolumeId = Id<struct VolumeIdTag>;
// Counts the openings of a volume: whoever has an older one may not change anything any more.
using Epoch = Id<struct EpochTag>;
// A drive of a pool. Numbers are not used again while anything refers to them.
using MegaVolId = Id<struct MegaVolIdTag, uint16_t>;

inline constexpr uint64_t kExtentBytes = 2_MiB;
inline constexpr uint64_t kExtentBytesMin = 64_KiB;  // of a pool; small ones are for tests
inline constexpr uint64_t kExtentBytesMax = 64_MiB;
inline constexpr size_t kReplicasMax = 3;
inline constexpr size_t kNameMax = 64;
inline constexpr size_t kUriMax = 1024;
inline constexpr uint32_t kMegaVolsMax = 1024;            // of a pool
inline constexpr uint32_t kMegaVolExtentsMax = 1U << 28;  // of a drive: 512 TiB
inline constexpr uint32_t kVolumeExtentsMax = 1U << 28;   // of a volume: 512 TiB
inline constexpr uint32_t kBlockBytes = 4096;             // of a volume
inline constexpr size_t kMappingsMax = 64;                // changed by one call to the arbiter
inline constexpr size_t kTablePageMax = 1024;             // read by one call
inline constexpr size_t kCopiesMax = 16;                  // extents, begun or ended by one call
inline constexpr size_t kFamilyMax = 256;   // a volume, its snapshots, their clones, and so on
inline constexpr char kSnapshotMark = '@';  // between the names of a volume and of its snapshot

// The first extent of a volume is its own: it holds the log of write intents (intent_log.h). Data
// begins with the next. Every count and index of extents here includes it.
inline constexpr uint32_t kLogExtent = 0;
inline constexpr uint32_t kFirstDataExtent = 1;

// How much each factor of an extent's placement counts, in thousandths. The drive with the lowest
// sum gets the extent.
struct Weights {
  int32_t extents = 1000;        // of the same volume that are there already
  int32_t used = 1000;           // how full the drive is
  int32_t busy = 1500;           // how much of its bandwidth is in use
  int32_t fragmentation = 1500;  // of its free space
  int32_t preference = 500;      // what the operator said of the drive
  friend bool operator==(const Weights&, const Weights&) = default;
};
inline constexpr int32_t kWeightMax = 100'000;

// Extents of a volume go to as many drives as there are, or to as few as hold them.
inline constexpr Weights kSpread = {};
inline constexpr Weights kPack = {
    .extents = -1000, .used = -1000, .busy = 0, .fragmentation = 0, .preference = 500};

// What the pool knows of a drive of a box.
struct MegaVolInfo {
  MegaVolId id;
  Uuid uuid{};              // of the label on it: another drive in its place has another
  std::string uri;          // how it is opened
  std::string box;          // what may fail together with it; empty: nothing else
  std::string rack;         // the same
  uint32_t extents = 0;     // its label's included, which is number 0
  int32_t preference = 0;   // in thousandths: the higher, the fewer extents it gets
  bool is_leaving = false;  // it gets no more extents, and those that it has move away
  friend bool operator==(const MegaVolInfo&, const MegaVolInfo&) = default;
};

// kInvalid: a name is 1 to kNameMax letters, digits, '-', '_' and '.', and begins with none of the
// last three.
Result<void> check_name(std::string_view name);
// kInvalid: a snapshot is called VOLUME@NAME, each of them such a name.
Result<void> check_snapshot_name(std::string_view name);
std::string snapshot_name(std::string_view volume, std::string_view name);
// kInvalid: 1 to kReplicasMax.
Result<void> check_replicas(uint32_t replicas);
// kInvalid: each between -kWeightMax and kWeightMax.
Result<void> check_weights(const Weights& weights);
// kInvalid: a power of two between kExtentBytesMin and kExtentBytesMax.
Result<void> check_extent_bytes(uint64_t bytes);

}  // namespace cairn::volume
