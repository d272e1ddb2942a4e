// SPDX-License-Identifier: Apache-2.0
// Slots: the 16384 parts into which the clients of Redis Cluster sort keys. A key's place on the
// ring is that of its slot, so the keys of a slot always have the same chain.
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn::kv::ring {

inline constexpr uint32_t kSlots = 16384;

// CRC16 (XMODEM) of the key, or of what is between its first '{' and the next '}' if there is
// something: keys with the same tag have the same slot.
uint32_t slot_of(std::string_view key);

// Slots lie on the ring in their order, each at one place in the middle of its part.
constexpr uint64_t place_of_slot(uint32_t slot) {
  constexpr int kShift = 50;
  static_assert(uint64_t{kSlots} << (kShift - 1) == uint64_t{1} << 63);
  return uint64_t{slot} << kShift | uint64_t{1} << (kShift - 1);
}

}  // namespace cairn::kv::ring
