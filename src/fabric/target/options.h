// SPDX-License-Identifier: Apache-2.0
// What a target's connections are limited by. Each wait has its deadline here.
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
// What one H2CData may bring: all that a command has. A command is asked for its data by one R2T,
// because Linux cannot take a second one safely: it still counts what it has sent for the first.
// And hosts before Linux 5.17 send all of an R2T in one PDU, whatever MAXH2CDATA says.
inline constexpr uint32_t kH2cDataMax = nvme::kTransferBytesMax;
// Bytes received and not yet understood. Holds any PDU but H2CData, whose data goes elsewhere. An
// I/O queue has room for many, so that one read brings them; an admin queue needs less.
inline constexpr uint32_t kStagingSize = 64 * 1024;
inline constexpr uint32_t kAdminStagingSize = 16 * 1024;
// What an I/O queue that is sent more than that at once gets, and how much more than kStagingSize
// all queues of a core may have together.
inline constexpr uint32_t kStagingMax = 256 * 1024;
inline constexpr size_t kStagingReserve = 16_MiB;
static_assert(kAdminStagingSize > UINT8_MAX + kInCapsuleMax + 4, "PDO, data and digest");

// What one connection's commands may have of the buffers of its core at a time, so that a host that
// neither reads nor sends cannot hold them all (DataShare): small data is up to kSmallDataMax.
inline constexpr uint32_t kTinyDataMax = 4096;
inline constexpr uint32_t kSmallDataMax = 64 * 1024;
inline constexpr uint32_t kSmallShare = 1024 * 1024;
inline constexpr uint32_t kLargeShare = 4 * 1024 * 1024;
// Buffers of a core for hosts that have proven nothing: discovery, and authentication.
inline constexpr uint32_t kUnprovenBuffers = 512;      // of 4 KiB
inline constexpr uint32_t kUnprovenBuffersLarge = 32;  // of kDiscoveryTransferBytesMax
// Buffers of a core for in-capsule data. They are its own, because a connection cannot read on
// without one: data asked for by R2T must not keep them.
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
  Duration write_timeout = 30_s;      // a host that does not read for so long is dropped
  // Nor one that does not send what it was asked for. The first of a fused pair whose second does
  // not come for so long is aborted.
  Duration data_timeout = 30_s;
  // A command that gets no buffer for so long is answered with Command Interrupted. Longer than the
  // two above: hosts that keep buffers by doing nothing are gone before.
  Duration buffer_timeout = 60_s;
  Duration linger_timeout = 1_s;      // after a TermReq, for the host to read it and close
  env::ConnectionLimits connections;  // of all cores together
  bool header_digest = true;          // a host that asks for one gets it; else it is told no
  bool data_digest = true;
  DoorbellOptions doorbell;  // of I/O queues; what an admin queue answers never waits
  std::function<void(const HostFault&)> on_fault;  // on the control core
  stream::RefusedConnectionHook on_refused;        // likewise
};

}  // namespace cairn::fabric
