// SPDX-License-Identifier: Apache-2.0
// vhost-user as bytes: messages between a front end (a virtual machine monitor) and a back end (us)
// over a local socket. Names follow the specification (docs/interop/vhost-user of QEMU); numbers
// have the byte order of the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::door::vhost_user {

enum class Request : uint32_t {
  kGetFeatures = 1,
  kSetFeatures = 2,
  kSetOwner = 3,
  kResetOwner = 4,
  kSetMemTable = 5,
  kSetLogBase = 6,
  kSetLogFd = 7,
  kSetVringNum = 8,
  kSetVringAddr = 9,
  kSetVringBase = 10,
  kGetVringBase = 11,
  kSetVringKick = 12,
  kSetVringCall = 13,
  kSetVringErr = 14,
  kGetProtocolFeatures = 15,
  kSetProtocolFeatures = 16,
  kGetQueueNum = 17,
  kSetVringEnable = 18,
  kSetBackendReqFd = 21,
  kGetConfig = 24,
  kSetConfig = 25,
  kGetInflightFd = 31,
  kSetInflightFd = 32,
  kResetDevice = 34,
  kGetMaxMemSlots = 36,
  kAddMemReg = 37,
  kRemMemReg = 38,
  kSetStatus = 39,
  kGetStatus = 40,
};

// From the back end to the front end.
enum class BackendRequest : uint32_t {
  kConfigChange = 2,
};

enum ProtocolFeature : uint64_t {
  kProtocolMultiQueue = 1 << 0,
  kProtocolLogMemory = 1 << 1,
  kProtocolReplyAck = 1 << 3,
  kProtocolBackendReq = 1 << 5,
  kProtocolConfig = 1 << 9,
  kProtocolInflight = 1 << 12,
  kProtocolResetDevice = 1 << 13,
  kProtocolMemorySlots = 1 << 15,
  kProtocolStatus = 1 << 16,
};

inline constexpr uint32_t kVersionMask = 0x3;
inline constexpr uint32_t kVersion = 0x1;
inline constexpr uint32_t kIsReply = 1 << 2;
inline constexpr uint32_t kNeedReply = 1 << 3;

struct MessageHeader {
  uint32_t request;
  uint32_t flags;
  uint32_t size;  // of the payload
};
static_assert(sizeof(MessageHeader) == 12);

struct VringState {
  uint32_t index;
  uint32_t num;
};
static_assert(sizeof(VringState) == 8);

struct VringAddress {
  uint32_t index;
  uint32_t flags;
  uint64_t descriptors;  // addresses of the front end's own
  uint64_t used;
  uint64_t available;
  uint64_t log;
};
static_assert(sizeof(VringAddress) == 40);
inline constexpr uint32_t kVringLog = 1;

// Of a kick, call or error signal: which vring, and that no descriptor comes with it.
inline constexpr uint64_t kSignalVringMask = 0xff;
inline constexpr uint64_t kSignalNone = 1 << 8;

struct MemoryRegion {
  uint64_t guest_address;
  uint64_t size;
  uint64_t user_address;
  uint64_t mmap_offset;
};
static_assert(sizeof(MemoryRegion) == 32);
inline constexpr size_t kTableRegionsMax = 8;

struct LogArea {
  uint64_t size;
  uint64_t offset;
};
static_assert(sizeof(LogArea) == 16);

struct ConfigHeader {
  uint32_t offset;
  uint32_t size;
  uint32_t flags;
};
static_assert(sizeof(ConfigHeader) == 12);
inline constexpr uint32_t kConfigMigration = 1;
inline constexpr size_t kConfigSizeMax = 256;

struct InflightArea {
  uint64_t mmap_size;
  uint64_t mmap_offset;
  uint16_t queues;
  uint16_t queue_size;
  uint32_t padding;
};
static_assert(sizeof(InflightArea) == 24);
// Without its padding, as some front ends send it.
inline constexpr size_t kInflightAreaBytes = 20;

// The largest payload that makes sense: a table of memory, or a configuration.
inline constexpr size_t kPayloadMax = 512;

}  // namespace cairn::door::vhost_user
