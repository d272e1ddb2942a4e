// SPDX-License-Identifier: Apache-2.0
// Reservations of one namespace as they are kept over a restart (PTPL): a head, then one entry per
// registered host. Read as hostile input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "nvme/format/field.h"
#include "nvme/format/reservation_format.h"
#include "nvme/reservation/reservations.h"

namespace cairn::nvme {

inline constexpr std::array<char, 8> kReservationStateMagic = {'c', 'a', 'i', 'r',
                                                               'n', 'r', 's', 'v'};
inline constexpr uint32_t kReservationStateVersion = 1;

struct ReservationStateHead {
  std::array<char, 8> magic{};
  Le32 version;
  Le32 length;    // bytes of all, this head included
  Le32 checksum;  // CRC32C of all bytes behind this field
  Le32 generation;
  Le32 entries;
  ReservationType type{};
  uint8_t persists = 0;
  Reserved<2> unused30{};
  std::array<uint8_t, 16> holder{};
  std::array<uint8_t, 16> nguid{};  // whose reservations these are
};
static_assert(sizeof(ReservationStateHead) == 64);
static_assert(offsetof(ReservationStateHead, checksum) == 16);
static_assert(offsetof(ReservationStateHead, generation) == 20);
static_assert(offsetof(ReservationStateHead, type) == 28);
static_assert(offsetof(ReservationStateHead, holder) == 32);
static_assert(offsetof(ReservationStateHead, nguid) == 48);

struct ReservationStateEntry {
  std::array<uint8_t, 16> host{};
  Le64 key;
};
static_assert(sizeof(ReservationStateEntry) == 24);
static_assert(offsetof(ReservationStateEntry, key) == 16);

std::vector<std::byte> encode_reservations(const Reservations::Saved& saved,
                                           const std::array<uint8_t, 16>& nguid);

// kCorrupt: not such bytes, torn, or impossible; kUnsupported: a newer version; kMismatch: of
// another namespace.
Result<Reservations::Saved> decode_reservations(Bytes bytes, const std::array<uint8_t, 16>& nguid);

}  // namespace cairn::nvme
