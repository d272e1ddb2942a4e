// SPDX-License-Identifier: Apache-2.0
// Which regions of a volume may be half written, as its first extent keeps it, on each leg:
//
//   block 0, 1   records, the newest in block (number modulo 2)
//
// A record is one sealed block (service/common/sealed_format.h) of 4096 bytes:
//   0    magic "CnIntent", version, checksum      the seal, 16 bytes
//   16   id of the volume                         eight bytes
//   24   epoch of the opening that wrote it       eight bytes
//   32   number, growing within an epoch          eight bytes
//   40   extents of a region                      four bytes
//   44   regions                                  four bytes
//   48   zero                                     16 bytes
//   64   a bit for each region, region 0 in the lowest bit of the first byte
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/region_set.h"
#include "volume/types.h"

namespace cairn::volume {

inline constexpr size_t kIntentBytes = 4096;
inline constexpr uint64_t kIntentRecords = 2;
inline constexpr uint32_t kIntentRegionsMax = (kIntentBytes - 64) * 8;

struct IntentRecord {
  VolumeId volume;
  Epoch epoch;
  uint64_t number = 0;
  uint32_t region_extents = 1;
  drive::RegionSet marks;
};

// How many extents a region has, so that all of a volume's have a bit.
constexpr uint32_t region_extents_for(uint32_t extents) {
  return (extents + kIntentRegionsMax - 1) / kIntentRegionsMax;
}

void encode_intents(const IntentRecord& record, MutableBytes block);
// None: the block is clear. kCorrupt; kUnsupported: of another version; kMismatch: of another
// volume.
Result<std::optional<IntentRecord>> decode_intents(Bytes block, VolumeId volume);

// Which of two is newer.
inline bool is_newer(const IntentRecord& one, const IntentRecord& other) {
  return one.epoch != other.epoch ? one.epoch > other.epoch : one.number > other.number;
}

}  // namespace cairn::volume
