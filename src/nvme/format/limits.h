// SPDX-License-Identifier: Apache-2.0
// What every controller of a box offers: Identify tells hosts, transports and queues keep to it.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace cairn::nvme {

// Data that may come in the capsule of an I/O command, besides the 64 bytes of its entry (IOCCSZ).
inline constexpr uint32_t kInCapsuleDataMax = 8192;
// MDTS: 2 ^ 8 pages of 4 KiB. Also bounds the data of an admin command.
inline constexpr uint8_t kTransferPagesShift = 8;
inline constexpr uint32_t kTransferBytesMax = 4096u << kTransferPagesShift;

// The same of a discovery controller, which anybody may have.
inline constexpr uint8_t kDiscoveryTransferPagesShift = 4;
inline constexpr uint32_t kDiscoveryTransferBytesMax = 4096u << kDiscoveryTransferPagesShift;
// What an admin command may bring: none needs more.
inline constexpr uint32_t kAdminSendMax = 4096;

inline constexpr uint32_t kVendorDataMax = 4096;  // of a vendor-specific command
static_assert(kVendorDataMax == kAdminSendMax, "nothing else refuses more");
inline constexpr uint32_t kNamespacesMax = 1024;  // MNAN: so many at a time
// NN of controllers on a fabric: nsids are 1 to this. More than there are namespaces, so that the
// id of one that is gone need not be given to another soon. Firmware of virtual machines asks for
// every id up to NN: theirs is kNamespacesMax.
inline constexpr uint32_t kNsidMax = 65536;
inline constexpr uint32_t kAnaGroupsMax = 128;         // ANAGRPMAX and NANAGRPID
inline constexpr uint8_t kEventRequestsMax = 4;        // AERL + 1
inline constexpr uint8_t kAbortsMax = 4;               // ACL + 1
inline constexpr uint8_t kErrorEntriesMax = 64;        // ELPE + 1
inline constexpr uint8_t kReservationNoticesMax = 64;  // unread ones of a controller
inline constexpr uint32_t kRegistrantsMax = 128;       // hosts registered with one namespace

// OFCS: whether transports end a connection after its I/O queue's Disconnect.
inline constexpr bool kServesDisconnect = true;

inline constexpr uint32_t kKeepAliveUnitMs = 100;  // KAS is 1
// A discovery controller without keep-alive ends when nothing came for this long.
inline constexpr Duration kDiscoveryIdle = 120_s;

// There is no sensor behind a file or memory: a steady 40 degrees, well below the thresholds.
inline constexpr uint16_t kTemperatureKelvin = 313;
inline constexpr uint16_t kWarningKelvin = 343;
inline constexpr uint16_t kCriticalKelvin = 353;

}  // namespace cairn::nvme
