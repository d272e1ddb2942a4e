// SPDX-License-Identifier: Apache-2.0
// How much a vfio-user client may ask of a server, and where things are in the device it sees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "door/common/guest_memory.h"

namespace cairn::door::vfio_user {

// The most bytes of data in one message, and of a whole one.
inline constexpr uint32_t kTransferMax = 1 << 20;
inline constexpr uint32_t kMessageMax = kTransferMax + 64;
// QEMU takes no larger number from a server.
inline constexpr size_t kDescriptorsMax = 16;
// The JSON of a version message.
inline constexpr size_t kVersionTextMax = 4096;
// What a device may send to its successor. More is no state of ours.
inline constexpr size_t kStateMax = 4 << 20;
// Of one bitmap of dirty pages: 32 GiB of memory in pages of 4 KiB.
inline constexpr size_t kBitmapMax = 1 << 20;

inline constexpr uint64_t kPageSize = 4096;
// Regions of its memory that a client lists at a time.
inline constexpr size_t kMapsMax = door::GuestMemory::kRegionsMax;

// BAR0: registers, then a page of doorbells; the rest reads as zeroes.
inline constexpr uint64_t kBar0Size = 16 << 10;
inline constexpr uint64_t kDoorbellsAt = 4 << 10;
inline constexpr uint64_t kDoorbellsSize = 4 << 10;
// BAR4: the MSI-X table, and pending bits in the second page.
inline constexpr uint64_t kBar4Size = 8 << 10;
inline constexpr uint64_t kPendingAt = 4 << 10;
// Vectors of a device: one per completion queue.
inline constexpr uint16_t kVectors = 128;

inline constexpr uint64_t kConfigSize = 4096;

}  // namespace cairn::door::vfio_user
