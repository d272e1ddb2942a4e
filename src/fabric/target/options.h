// SPDX-License-Identifier: Apache-2.0
// Limits and deadlines of a target's connections. Each wait has its deadline here.
#pragma once

#include <cstdint>
#include <functional>

#include "base/units.h"
#include "env/address.h"
#include "env/connection_slots.h"
#include "fabric/wire/doorbell.h"
#include "nvme/format/limits.h"
#include "nvme/format/pdu.h"
#include "stream/reception.h"

namespace cairn::fabric {

// In-capsule data of I/O commands; IOCCSZ of Identify Controller says the same.
inline constexpr uint32_t kInCapsuleMax = 8192;
// The most data of one H2CData: all data of a command. The target requests it by one R2T, because
// Linux does not handle a second one safely: it still counts the bytes that it sent for the first.
// And hosts before Linux 5.17 send all data of an R2T in one PDU, whatever MAXH2CDATA says.
inline constexpr uint32_t kH2cDataMax = nvme::kTransferBytesMax;
// Bytes received and not yet parsed. Holds any PDU but H2CData, whose data goes elsewhere. An I/O
// queue has room for many, so that one read receives them; an admin queue needs less.
inline constexpr uint32_t kStagingSize = 64 * 1024;
inline constexpr uint32_t kAdminStagingSize = 16 * 1024;
// The size for an I/O queue that receives more than that at once, and how much more than
// kStagingSize all queues of a core may have together.
inline constexpr uint32_t kStagingMax = 256 * 1024;
inline constexpr size_t kStagingReserve = 16_MiB;
static_assert(kAdminStagingSize > UINT8_MAX + kInCapsuleMax + 4, "PDO, data and digest");

// The share of one connection's commands in the buffers of its core, so that a host that neither
// reads nor sends cannot hold them all (DataShare): small data is up to kSmallDataMax.
inline constexpr uint32_t kTinyDataMax = 4096;
inline constexpr uint32_t kSmallDataMax = 64 * 1024;
inline constexpr uint32_t kSmallShare = 1024 * 1024;
inline constexpr uint32_t kLargeShare = 4 * 1024 * 1024;
// Buffers of a core for hosts that have proven nothing: discovery, and authentication.
inline constexpr uint32_t kUnprovenBuffers = 512;      // of 4 KiB
inline constexpr uint32_t kUnprovenBuffersLarge = 32;  // of kDiscoveryTransferBytesMax
// Buffers of a core for in-capsule data. They are separate, because a connection cannot read on
// without one: data that was requested by R2T must not occupy them.
inline constexpr uint32_t kInCapsuleBuffers = 1024;      // of 4 KiB, the usual block
inline constexpr uint32_t kInCapsuleBuffersLarge = 256;  // of kInCapsuleMax

// A host that broke the protocol, for our own log: its connection has ended.
struct HostFault {
  env::Address peer;
  uint16_t queue_id = 0;
  nvme::PduFault fault;
  nvme::PduType type{};  // of the PDU that had it
};

struct TargetOptions {
  Duration handshake_timeout = 10_s;  // from accept to the answer of Connect; TLS has it too
  Duration write_timeout = 30_s;      // a host that does not read for this long is dropped
  // So is a host that does not send the data of an R2T. The first command of a fused pair is
  // aborted when its second does not arrive in this time.
  Duration data_timeout = 30_s;
  // A command that gets no buffer in this time is answered with Command Interrupted. Longer than
  // the two above: hosts that hold buffers by doing nothing are dropped before.
  Duration buffer_timeout = 60_s;
  Duration linger_timeout = 1_s;      // after a TermReq, for the host to read it and close
  env::ConnectionLimits connections;  // of all cores together
  bool header_digest = true;          // false: hosts that ask for one are refused it
  bool data_digest = true;
  DoorbellOptions doorbell;  // of I/O queues; what an admin queue answers never waits
  std::function<void(const HostFault&)> on_fault;  // on the control core
  stream::RefusedConnectionHook on_refused;        // likewise
};

}  // namespace cairn::fabric
