// SPDX-License-Identifier: Apache-2.0
// Reservations (NVMe Base 2.0, 7 and 8.19): which hosts may read and write a namespace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// RTYPE
enum class ReservationType : uint8_t {
  kNone = 0,
  kWriteExclusive = 1,
  kExclusiveAccess = 2,
  kWriteExclusiveRegistrants = 3,
  kExclusiveAccessRegistrants = 4,
  kWriteExclusiveAll = 5,
  kExclusiveAccessAll = 6,
};

// Data of Register: 16 bytes.
struct RegisterData {
  Le64 current_key;  // CRKEY
  Le64 new_key;      // NRKEY
};
static_assert(sizeof(RegisterData) == 16 && offsetof(RegisterData, new_key) == 8);

// Data of Acquire: 16 bytes.
struct AcquireData {
  Le64 current_key;  // CRKEY
  Le64 preempt_key;  // PRKEY
};
static_assert(sizeof(AcquireData) == 16 && offsetof(AcquireData, preempt_key) == 8);

// Data of Release: 8 bytes.
struct ReleaseData {
  Le64 current_key;  // CRKEY
};
static_assert(sizeof(ReleaseData) == 8);

// RREGA
enum class RegisterAction : uint8_t { kRegister = 0, kUnregister = 1, kReplace = 2 };
// CPTPL: change persist through power loss.
enum class PersistChange : uint8_t { kKeep = 0, kReserved = 1, kClear = 2, kSet = 3 };

struct RegisterFields {
  RegisterAction action{};  // RREGA; values above 2 are reserved
  bool ignore_key = false;  // IEKEY
  PersistChange persist{};  // CPTPL

  static constexpr RegisterFields decode(const Sqe& sqe) {
    return {.action = static_cast<RegisterAction>(bits<2, 0>(sqe.cdw10)),
            .ignore_key = bit<3>(sqe.cdw10),
            .persist = static_cast<PersistChange>(bits<31, 30>(sqe.cdw10))};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<2, 0>(static_cast<uint8_t>(action)) | to_bits32<3, 3>(ignore_key) |
                to_bits32<31, 30>(static_cast<uint8_t>(persist));
  }
  friend constexpr bool operator==(const RegisterFields&, const RegisterFields&) = default;
};

// RACQA
enum class AcquireAction : uint8_t { kAcquire = 0, kPreempt = 1, kPreemptAndAbort = 2 };

struct AcquireFields {
  AcquireAction action{};   // RACQA; values above 2 are reserved
  bool ignore_key = false;  // IEKEY
  ReservationType type{};   // RTYPE; values above 6 are reserved

  static constexpr AcquireFields decode(const Sqe& sqe) {
    return {.action = static_cast<AcquireAction>(bits<2, 0>(sqe.cdw10)),
            .ignore_key = bit<3>(sqe.cdw10),
            .type = static_cast<ReservationType>(bits<15, 8>(sqe.cdw10))};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<2, 0>(static_cast<uint8_t>(action)) | to_bits32<3, 3>(ignore_key) |
                to_bits32<15, 8>(static_cast<uint8_t>(type));
  }
  friend constexpr bool operator==(const AcquireFields&, const AcquireFields&) = default;
};

// RRELA
enum class ReleaseAction : uint8_t { kRelease = 0, kClear = 1 };

struct ReleaseFields {
  ReleaseAction action{};   // RRELA; values above 1 are reserved
  bool ignore_key = false;  // IEKEY
  ReservationType type{};   // RTYPE

  static constexpr ReleaseFields decode(const Sqe& sqe) {
    return {.action = static_cast<ReleaseAction>(bits<2, 0>(sqe.cdw10)),
            .ignore_key = bit<3>(sqe.cdw10),
            .type = static_cast<ReservationType>(bits<15, 8>(sqe.cdw10))};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<2, 0>(static_cast<uint8_t>(action)) | to_bits32<3, 3>(ignore_key) |
                to_bits32<15, 8>(static_cast<uint8_t>(type));
  }
  friend constexpr bool operator==(const ReleaseFields&, const ReleaseFields&) = default;
};

struct ReportFields {
  uint32_t dwords = 0;    // NUMD: zero-based
  bool extended = false;  // EDS: host identifiers of 16 bytes; Fabrics demands it

  constexpr uint64_t length() const { return (uint64_t{dwords} + 1) * 4; }

  static constexpr ReportFields decode(const Sqe& sqe) {
    return {.dwords = sqe.cdw10, .extended = bit<0>(sqe.cdw11)};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = dwords;
    sqe.cdw11 = to_bits32<0, 0>(extended);
  }
  friend constexpr bool operator==(const ReportFields&, const ReportFields&) = default;
};

// What Report returns: this, then 40 more reserved bytes if extended, then the registrants.
struct ReservationStatus {
  Le32 generation;         // GEN
  ReservationType type{};  // RTYPE
  Le16 registrants;        // REGCTL: entries that follow
  Reserved<2> unused7{};
  uint8_t persist = 0;  // PTPLS
  Reserved<14> unused10{};
};
static_assert(sizeof(ReservationStatus) == 24);
static_assert(offsetof(ReservationStatus, type) == 4);
static_assert(offsetof(ReservationStatus, registrants) == 5);
static_assert(offsetof(ReservationStatus, persist) == 9);

struct ReservationStatusExtended {
  ReservationStatus status;
  Reserved<40> unused24{};
};
static_assert(sizeof(ReservationStatusExtended) == 64);

// RCSTS bit 0: this registrant holds the reservation.
inline constexpr uint8_t kHoldsReservation = 1 << 0;
// CNTLID of a registrant whose host has no controller at the moment.
inline constexpr uint16_t kNoController = 0xffff;

struct Registrant {
  Le16 controller_id;  // CNTLID
  uint8_t status = 0;  // RCSTS
  Reserved<5> unused3{};
  Le64 host_id;  // HOSTID
  Le64 key;      // RKEY
};
static_assert(sizeof(Registrant) == 24);
static_assert(offsetof(Registrant, status) == 2);
static_assert(offsetof(Registrant, host_id) == 8);
static_assert(offsetof(Registrant, key) == 16);

struct RegistrantExtended {
  Le16 controller_id;  // CNTLID
  uint8_t status = 0;  // RCSTS
  Reserved<5> unused3{};
  Le64 key;                           // RKEY
  std::array<uint8_t, 16> host_id{};  // HOSTID
  Reserved<32> unused32{};
};
static_assert(sizeof(RegistrantExtended) == 64);
static_assert(offsetof(RegistrantExtended, status) == 2);
static_assert(offsetof(RegistrantExtended, key) == 8);
static_assert(offsetof(RegistrantExtended, host_id) == 16);

}  // namespace cairn::nvme
