// SPDX-License-Identifier: Apache-2.0
// Where things are in the PCI configuration space of our device, and which of its bits mean what
// (PCI Local Bus 3.0 section 6, PCI Express Base 4.0 section 7, NVMe over PCIe Transport 1.0).
#pragma once

#include <cstdint>

namespace cairn::door::vfio_user {

// Guests find an NVMe controller by its class. Ids need to be somebody's: this is the vendor of
// emulated devices, with a number that QEMU has given to none. Its own controller's (0010) would
// make Linux apply the workarounds for that one, and ignore the ids of our namespaces.
inline constexpr uint16_t kVendorId = 0x1b36;
inline constexpr uint16_t kDeviceId = 0xca10;
inline constexpr uint16_t kSubsystemVendorId = 0x1af4;
inline constexpr uint16_t kSubsystemId = 0x1100;
inline constexpr uint8_t kRevision = 2;
// Mass storage, non-volatile memory, NVMe I/O controller.
inline constexpr uint32_t kClassCode = 0x010802;

// Type 0 header.
inline constexpr uint16_t kVendorIdAt = 0x00;
inline constexpr uint16_t kDeviceIdAt = 0x02;
inline constexpr uint16_t kCommandAt = 0x04;
inline constexpr uint16_t kStatusAt = 0x06;
inline constexpr uint16_t kRevisionAt = 0x08;
inline constexpr uint16_t kClassCodeAt = 0x09;
inline constexpr uint16_t kCacheLineAt = 0x0c;
inline constexpr uint16_t kBar0At = 0x10;
inline constexpr uint16_t kBar4At = 0x20;
inline constexpr uint16_t kSubsystemVendorAt = 0x2c;
inline constexpr uint16_t kSubsystemAt = 0x2e;
inline constexpr uint16_t kCapabilitiesAt = 0x34;
inline constexpr uint16_t kInterruptLineAt = 0x3c;
inline constexpr uint16_t kInterruptPinAt = 0x3d;

inline constexpr uint16_t kCommandMemory = 1 << 1;
inline constexpr uint16_t kCommandMaster = 1 << 2;
inline constexpr uint16_t kCommandParity = 1 << 6;
inline constexpr uint16_t kCommandSerr = 1 << 8;
inline constexpr uint16_t kCommandNoIntx = 1 << 10;
inline constexpr uint16_t kStatusInterrupt = 1 << 3;
inline constexpr uint16_t kStatusCapabilities = 1 << 4;
inline constexpr uint32_t kBarIs64 = 1 << 2;

// Power management.
inline constexpr uint16_t kPowerAt = 0x40;
inline constexpr uint8_t kPowerId = 0x01;
inline constexpr uint16_t kPowerVersion = 3;
inline constexpr uint16_t kPowerControlAt = kPowerAt + 4;
inline constexpr uint16_t kPowerStateMask = 3;
inline constexpr uint16_t kPowerKeepsState = 1 << 3;

// MSI-X.
inline constexpr uint16_t kMsixAt = 0x50;
inline constexpr uint8_t kMsixId = 0x11;
inline constexpr uint16_t kMsixControlAt = kMsixAt + 2;
inline constexpr uint16_t kMsixEnable = 1 << 15;
inline constexpr uint16_t kMsixMaskAll = 1 << 14;
inline constexpr uint16_t kMsixTableAt = kMsixAt + 4;
inline constexpr uint16_t kMsixPendingAt = kMsixAt + 8;
inline constexpr uint32_t kMsixBar = 4;
// Of the table.
inline constexpr uint64_t kMsixEntrySize = 16;
inline constexpr uint64_t kMsixEntryControlAt = 12;
inline constexpr uint8_t kMsixEntryMasked = 1;

// PCI Express endpoint.
inline constexpr uint16_t kExpressAt = 0x60;
inline constexpr uint8_t kExpressId = 0x10;
inline constexpr uint16_t kExpressVersion = 2;  // and port type 0: endpoint
inline constexpr uint16_t kExpressDeviceAt = kExpressAt + 4;
inline constexpr uint32_t kExpressRoleErrors = 1 << 15;
inline constexpr uint32_t kExpressCanReset = 1 << 28;
inline constexpr uint16_t kExpressControlAt = kExpressAt + 8;
inline constexpr uint16_t kExpressReset = 1 << 15;
inline constexpr uint16_t kExpressLinkAt = kExpressAt + 12;
inline constexpr uint16_t kExpressLinkControlAt = kExpressAt + 16;
inline constexpr uint16_t kExpressLinkStatusAt = kExpressAt + 18;
// 8 GT/s over four lanes.
inline constexpr uint32_t kExpressLink = 3 | (4 << 4);

}  // namespace cairn::door::vfio_user
