// SPDX-License-Identifier: Apache-2.0
// The vfio-user protocol as bytes: header, payloads and numbers. Names follow the specification
// (docs/interop/vfio-user.rst of QEMU); numbers of regions, interrupts, states and features are
// those of Linux's VFIO. All numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nvme/format/field.h"

namespace cairn::door::vfio_user {

using nvme::bytes_of;
using nvme::Le16;
using nvme::Le32;
using nvme::Le64;
using nvme::mutable_bytes_of;

// ---- header ----

enum class Command : uint16_t {
  kVersion = 1,
  kDmaMap = 2,
  kDmaUnmap = 3,
  kGetInfo = 4,
  kGetRegionInfo = 5,
  kGetRegionIoFds = 6,
  kGetIrqInfo = 7,
  kSetIrqs = 8,
  kRegionRead = 9,
  kRegionWrite = 10,
  kDmaRead = 11,   // from the server
  kDmaWrite = 12,  // from the server
  kReset = 13,
  kDirtyPages = 14,
  kRegionWriteMulti = 15,
  kFeature = 16,
  kMigrationRead = 17,
  kMigrationWrite = 18,
};

// Of Header::flags.
inline constexpr uint32_t kTypeMask = 0xf;
inline constexpr uint32_t kTypeCommand = 0;
inline constexpr uint32_t kTypeReply = 1;
inline constexpr uint32_t kNoReply = 1 << 4;
inline constexpr uint32_t kError = 1 << 5;

struct Header {
  Le16 id;
  Le16 command;
  Le32 size;  // of the whole message
  Le32 flags;
  Le32 error;
};
static_assert(sizeof(Header) == 16);

// ---- version ----

inline constexpr uint16_t kMajor = 0;
inline constexpr uint16_t kMinor = 1;

// JSON follows, with a zero byte at its end.
struct Version {
  Le16 major = kMajor;
  Le16 minor = kMinor;
};
static_assert(sizeof(Version) == 4);

// What a peer takes when it says nothing.
inline constexpr uint32_t kDescriptorsDefault = 1;
inline constexpr uint32_t kTransferDefault = 1 << 20;

// ---- DMA ----

inline constexpr uint32_t kDmaReadable = 1 << 0;
inline constexpr uint32_t kDmaWritable = 1 << 1;

struct DmaMap {
  Le32 argsz;
  Le32 flags;
  Le64 offset;  // in the descriptor
  Le64 address;
  Le64 size;
};
static_assert(sizeof(DmaMap) == 32);

inline constexpr uint32_t kUnmapGetDirty = 1 << 0;  // a DirtyBitmap follows
inline constexpr uint32_t kUnmapAll = 1 << 1;

struct DmaUnmap {
  Le32 argsz;
  Le32 flags;
  Le64 address;
  Le64 size;
};
static_assert(sizeof(DmaUnmap) == 24);

// Data follows in the command of a write and in the reply to a read.
struct DmaAccess {
  Le64 address;
  Le64 count;
};
static_assert(sizeof(DmaAccess) == 16);

// ---- dirty pages, as older clients ask for them ----

inline constexpr uint32_t kDirtyStart = 1 << 0;
inline constexpr uint32_t kDirtyStop = 1 << 1;
inline constexpr uint32_t kDirtyGetBitmap = 1 << 2;

struct DirtyPages {
  Le32 argsz;
  Le32 flags;
};
static_assert(sizeof(DirtyPages) == 8);

struct DirtyBitmap {
  Le64 page_size;
  Le64 size;  // of the bitmap that follows in the reply
  Le64 data;  // unused
};
static_assert(sizeof(DirtyBitmap) == 24);

struct DirtyRange {
  Le64 address;
  Le64 size;
  DirtyBitmap bitmap;
};
static_assert(sizeof(DirtyRange) == 40);

// ---- device, regions ----

inline constexpr uint32_t kDeviceReset = 1 << 0;
inline constexpr uint32_t kDevicePci = 1 << 1;

struct DeviceInfo {
  Le32 argsz;
  Le32 flags;
  Le32 regions;
  Le32 irqs;
};
static_assert(sizeof(DeviceInfo) == 16);

enum Region : uint32_t {
  kBar0 = 0,
  kBar4 = 4,
  kRom = 6,
  kConfig = 7,
  kVga = 8,
  kRegions = 9,
};

inline constexpr uint32_t kRegionReadable = 1 << 0;
inline constexpr uint32_t kRegionWritable = 1 << 1;
inline constexpr uint32_t kRegionMappable = 1 << 2;
inline constexpr uint32_t kRegionHasCapabilities = 1 << 3;

struct RegionInfo {
  Le32 argsz;
  Le32 flags;
  Le32 index;
  Le32 capability_offset;
  Le64 size;
  Le64 offset;
};
static_assert(sizeof(RegionInfo) == 32);

inline constexpr uint16_t kCapabilitySparseMap = 1;

// One area of a region that can be mapped.
struct SparseMap {
  Le16 id = kCapabilitySparseMap;
  Le16 version = uint16_t{1};
  Le32 next;
  Le32 areas = 1u;
  Le32 reserved;
  Le64 offset;
  Le64 size;
};
static_assert(sizeof(SparseMap) == 32);

struct RegionIoFds {
  Le32 argsz;
  Le32 flags;
  Le32 index;
  Le32 count;
};
static_assert(sizeof(RegionIoFds) == 16);

// Data follows in the command of a write and in the reply to a read.
struct RegionAccess {
  Le64 offset;
  Le32 region;
  Le32 count;
};
static_assert(sizeof(RegionAccess) == 16);

// `count` of these follow a Le64 that counts them.
struct RegionWriteOne {
  Le64 offset;
  Le32 region;
  Le32 count;
  std::array<std::byte, 8> data{};
};
static_assert(sizeof(RegionWriteOne) == 24);

// ---- interrupts ----

enum Irq : uint32_t {
  kIntx = 0,
  kMsi = 1,
  kMsix = 2,
  kErr = 3,
  kReq = 4,  // the device is asked back
  kIrqs = 5,
};

inline constexpr uint32_t kIrqEventfd = 1 << 0;
inline constexpr uint32_t kIrqMaskable = 1 << 1;
inline constexpr uint32_t kIrqAutomasked = 1 << 2;

struct IrqInfo {
  Le32 argsz;
  Le32 flags;
  Le32 index;
  Le32 count;
};
static_assert(sizeof(IrqInfo) == 16);

inline constexpr uint32_t kIrqDataNone = 1 << 0;
inline constexpr uint32_t kIrqDataBool = 1 << 1;
inline constexpr uint32_t kIrqDataEventfd = 1 << 2;
inline constexpr uint32_t kIrqActionMask = 1 << 3;
inline constexpr uint32_t kIrqActionUnmask = 1 << 4;
inline constexpr uint32_t kIrqActionTrigger = 1 << 5;

// With kIrqDataBool `count` bytes follow.
struct IrqSet {
  Le32 argsz;
  Le32 flags;
  Le32 index;
  Le32 start;
  Le32 count;
};
static_assert(sizeof(IrqSet) == 20);

// ---- features and migration ----

inline constexpr uint32_t kFeatureMask = 0xffff;
inline constexpr uint32_t kFeatureGet = 1 << 16;
inline constexpr uint32_t kFeatureSet = 1 << 17;
inline constexpr uint32_t kFeatureProbe = 1 << 18;

enum class FeatureId : uint16_t {
  kMigration = 1,
  kMigrationState = 2,
  kLoggingStart = 6,
  kLoggingStop = 7,
  kLoggingReport = 8,
};

struct Feature {
  Le32 argsz;
  Le32 flags;
};
static_assert(sizeof(Feature) == 8);

inline constexpr uint64_t kMigrationStopCopy = 1 << 0;

struct FeatureMigration {
  Le64 flags;
};
static_assert(sizeof(FeatureMigration) == 8);

enum class DeviceState : uint32_t {
  kError = 0,
  kStop = 1,
  kRunning = 2,
  kStopCopy = 3,
  kResuming = 4,
};

struct FeatureState {
  Le32 state;
  Le32 data_fd;  // unused
};
static_assert(sizeof(FeatureState) == 8);

struct LoggingRange {
  Le64 address;
  Le64 length;
};
static_assert(sizeof(LoggingRange) == 16);

// `ranges` of LoggingRange follow.
struct FeatureLoggingStart {
  Le64 page_size;
  Le32 ranges;
  Le32 reserved;
};
static_assert(sizeof(FeatureLoggingStart) == 16);

// The bitmap follows in the reply.
struct FeatureLoggingReport {
  Le64 address;
  Le64 length;
  Le64 page_size;
};
static_assert(sizeof(FeatureLoggingReport) == 24);

// Data follows in the command of a write and in the reply to a read.
struct MigrationData {
  Le32 argsz;
  Le32 size;
};
static_assert(sizeof(MigrationData) == 8);

}  // namespace cairn::door::vfio_user
