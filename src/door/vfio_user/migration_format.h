// SPDX-License-Identifier: Apache-2.0
// What a device sends to its successor, perhaps in another process on another kind of machine.
#pragma once

#include <cstdint>

#include "door/vfio_user/config_space.h"
#include "door/vfio_user/interrupts.h"
#include "door/vfio_user/limits.h"
#include "door/vfio_user/wire_format.h"

namespace cairn::door::vfio_user {

inline constexpr uint64_t kStateMagic = 0x3165'7461'7453'6643;  // "CfState1"
inline constexpr uint32_t kStateVersion = 1;

// First this; then, in this order, configuration space, interrupts, the page of doorbells, and
// `device_size` bytes that the device knows.
struct StateHeader {
  Le64 magic = kStateMagic;
  Le32 version = kStateVersion;
  Le32 config_size = uint32_t{ConfigSpace::kStateSize};
  Le32 interrupts_size = uint32_t{Interrupts::kStateSize};
  Le32 doorbells_size = uint32_t{kDoorbellsSize};
  Le32 device_size;
  Le32 checksum;  // CRC32C of all that follows the header
};
static_assert(sizeof(StateHeader) == 32);

}  // namespace cairn::door::vfio_user
