// SPDX-License-Identifier: Apache-2.0
// Virtio 1.2 as bytes: features, split and packed virtqueues, and the block device. All numbers are
// little-endian. Section numbers are those of the specification.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::door::vhost_user {

// ---- features (section 6, 5.2.3) ----

enum Feature : uint64_t {
  kBlkSizeMax = 1ull << 1,
  kBlkSegMax = 1ull << 2,
  kBlkReadOnly = 1ull << 5,
  kBlkBlockSize = 1ull << 6,
  kBlkFlush = 1ull << 9,
  kBlkTopology = 1ull << 10,
  kBlkConfigWriteback = 1ull << 11,
  kBlkMultiQueue = 1ull << 12,
  kBlkDiscard = 1ull << 13,
  kBlkWriteZeroes = 1ull << 14,
  kLogAll = 1ull << 26,  // vhost: every write to guest memory is noted in the log
  kRingIndirect = 1ull << 28,
  kRingEventIndex = 1ull << 29,
  kProtocolFeatures = 1ull << 30,  // vhost-user: of the protocol, not of the device
  kVersion1 = 1ull << 32,
  kRingPacked = 1ull << 34,
};

// ---- virtqueues (section 2.7, 2.8) ----

inline constexpr uint32_t kQueueSizeMax = 32768;

inline constexpr uint16_t kDescriptorNext = 1;
inline constexpr uint16_t kDescriptorWrite = 2;  // the device writes there
inline constexpr uint16_t kDescriptorIndirect = 4;
inline constexpr uint16_t kDescriptorAvailable = 1 << 7;  // packed
inline constexpr uint16_t kDescriptorUsed = 1 << 15;      // packed

struct SplitDescriptor {
  uint64_t address;
  uint32_t length;
  uint16_t flags;
  uint16_t next;
};
static_assert(sizeof(SplitDescriptor) == 16);

// Of the available ring: flags, index, the heads, and the index at which the driver wants to be
// told. The used ring is alike.
inline constexpr size_t kRingFlags = 0;
inline constexpr size_t kRingIndex = 2;
inline constexpr size_t kRingEntries = 4;
inline constexpr uint16_t kAvailableNoInterrupt = 1;
inline constexpr uint16_t kUsedNoNotify = 1;

struct UsedElement {
  uint32_t id;
  uint32_t length;
};
static_assert(sizeof(UsedElement) == 8);

constexpr size_t available_size(size_t queue_size) { return kRingEntries + 2 * queue_size + 2; }
constexpr size_t used_size(size_t queue_size) {
  return kRingEntries + sizeof(UsedElement) * queue_size + 2;
}

struct PackedDescriptor {
  uint64_t address;
  uint32_t length;
  uint16_t id;
  uint16_t flags;
};
static_assert(sizeof(PackedDescriptor) == 16);

// Who wants to be told of what: an offset with the wrap counter as its highest bit, and flags.
inline constexpr size_t kEventOffset = 0;
inline constexpr size_t kEventFlags = 2;
inline constexpr size_t kEventSize = 4;
inline constexpr uint16_t kEventEnable = 0;
inline constexpr uint16_t kEventDisable = 1;
inline constexpr uint16_t kEventAtOffset = 2;
inline constexpr uint16_t kWrapBit = 1 << 15;

// ---- the block device (section 5.2) ----

inline constexpr uint64_t kSector = 512;

struct [[gnu::packed]] BlkConfig {
  uint64_t capacity;  // in sectors
  uint32_t size_max;  // of a segment
  uint32_t seg_max;
  uint16_t cylinders;
  uint8_t heads;
  uint8_t sectors;
  uint32_t block_size;
  uint8_t physical_block_exponent;
  uint8_t alignment_offset;
  uint16_t io_size_min;  // in blocks
  uint32_t io_size_best;
  uint8_t writeback;
  uint8_t unused0;
  uint16_t queues;
  uint32_t discard_sectors_max;
  uint32_t discard_segments_max;
  uint32_t discard_sector_alignment;
  uint32_t write_zeroes_sectors_max;
  uint32_t write_zeroes_segments_max;
  uint8_t write_zeroes_may_unmap;
  uint8_t unused1[3];
};
static_assert(sizeof(BlkConfig) == 60);
static_assert(offsetof(BlkConfig, writeback) == 32);

struct BlkHeader {
  uint32_t type;
  uint32_t reserved;
  uint64_t sector;
};
static_assert(sizeof(BlkHeader) == 16);

enum class BlkType : uint32_t {
  kIn = 0,
  kOut = 1,
  kFlush = 4,
  kGetId = 8,
  kDiscard = 11,
  kWriteZeroes = 13,
};

struct BlkRange {  // of a discard or write-zeroes
  uint64_t sector;
  uint32_t sectors;
  uint32_t flags;
};
static_assert(sizeof(BlkRange) == 16);
inline constexpr uint32_t kRangeUnmap = 1;

inline constexpr size_t kBlkIdSize = 20;

enum class BlkStatus : uint8_t { kOk = 0, kError = 1, kUnsupported = 2 };

}  // namespace cairn::door::vhost_user
