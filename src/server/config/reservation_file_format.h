// SPDX-License-Identifier: Apache-2.0
// A file of one namespace's reservations: two slots of a block each, written in turn, so that the
// last one that was acknowledged is whole whatever happens to the next. Read as hostile input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nvme/format/field.h"
#include "nvme/format/limits.h"
#include "nvme/reservation/reservation_state_format.h"

namespace cairn::server {

inline constexpr std::array<char, 8> kReservationSlotMagic = {'c', 'a', 'i', 'r',
                                                              'n', 'r', 'v', 'f'};
inline constexpr uint32_t kReservationSlotVersion = 1;
inline constexpr size_t kReservationSlotSize = 4096;
inline constexpr size_t kReservationSlots = 2;
inline constexpr size_t kReservationFileSize = kReservationSlots * kReservationSlotSize;

// A slot that was never written is all zeroes. `length` bytes of state follow this head.
struct ReservationSlotHead {
  std::array<char, 8> magic{};
  nvme::Le32 checksum;  // CRC32C of all behind this field, up to the end of the state
  nvme::Le32 version;
  nvme::Le64 sequence;  // the highest is the newest; from 1
  nvme::Le32 length;    // 0: there are no reservations
  nvme::Reserved<4> unused28{};
};
static_assert(sizeof(ReservationSlotHead) == 32);
static_assert(offsetof(ReservationSlotHead, checksum) == 8);
static_assert(offsetof(ReservationSlotHead, sequence) == 16);
static_assert(offsetof(ReservationSlotHead, length) == 24);

inline constexpr size_t kReservationStateMax = kReservationSlotSize - sizeof(ReservationSlotHead);
static_assert(sizeof(nvme::ReservationStateHead) +
                  nvme::kRegistrantsMax * sizeof(nvme::ReservationStateEntry) <=
              kReservationStateMax);

}  // namespace cairn::server
