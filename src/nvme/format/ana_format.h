// SPDX-License-Identifier: Apache-2.0
// The log page of asymmetric namespace access (LID 0Ch): how well each group of namespaces is
// reached through this controller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nvme/format/field.h"

namespace cairn::nvme {

enum class AnaState : uint8_t {
  kOptimized = 0x1,
  kNonOptimized = 0x2,
  kInaccessible = 0x3,
  kPersistentLoss = 0x4,
  kChange = 0xf,
};

// LSP bit 0 of Get Log Page: leave out the namespace identifiers.
inline constexpr uint8_t kAnaGroupsOnly = 1 << 0;  // RGO

// The page: this, then `groups` descriptors in ascending order of their ids.
struct AnaHeader {
  Le64 change_count;  // CHGCNT
  Le16 groups;        // descriptors that follow
  Reserved<6> unused10{};
};
static_assert(sizeof(AnaHeader) == 16);
static_assert(offsetof(AnaHeader, groups) == 8);

// A descriptor: this, then `namespaces` identifiers of 4 bytes in ascending order.
struct AnaGroup {
  Le32 group_id;           // AGID
  Le32 namespaces;         // NNV
  Le64 change_count;       // CHGCNT
  uint8_t state_bits = 0;  // bits 3:0
  Reserved<15> unused17{};

  constexpr AnaState state() const { return static_cast<AnaState>(bits<3, 0>(state_bits)); }
  constexpr void set_state(AnaState state) { state_bits = static_cast<uint8_t>(state); }
};
static_assert(sizeof(AnaGroup) == 32);
static_assert(offsetof(AnaGroup, namespaces) == 4);
static_assert(offsetof(AnaGroup, change_count) == 8);
static_assert(offsetof(AnaGroup, state_bits) == 16);

}  // namespace cairn::nvme
