// SPDX-License-Identifier: Apache-2.0
// Get Features and Set Features (NVMe Base 2.0, 5.15 and 5.27). A feature's value is dword 11 of a
// Set and dword 0 of the completion of a Get; some have a data structure besides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// FID
enum class Feature : uint8_t {
  kArbitration = 0x01,
  kPowerManagement = 0x02,
  kTemperatureThreshold = 0x04,
  kErrorRecovery = 0x05,
  kWriteCache = 0x06,
  kNumberOfQueues = 0x07,
  kInterruptCoalescing = 0x08,
  kInterruptVector = 0x09,
  kWriteAtomicity = 0x0a,
  kEventConfiguration = 0x0b,
  kAutonomousPower = 0x0c,
  kHostMemoryBuffer = 0x0d,
  kTimestamp = 0x0e,
  kKeepAlive = 0x0f,
  kThermalManagement = 0x10,
  kNonOperationalPower = 0x11,
  kHostBehavior = 0x16,
  kCommandSetProfile = 0x19,
  kSoftwareProgress = 0x80,
  kHostId = 0x81,
  kReservationNoticeMask = 0x82,
  kReservationPersistence = 0x83,
  kWriteProtection = 0x84,
  kIncarnations = 0xc0,  // ours, where vendors may have their own: the host goes by incarnations
};

// SEL: which value of a feature to get.
enum class FeatureSelect : uint8_t { kCurrent = 0, kDefault = 1, kSaved = 2, kCapabilities = 3 };

// Dword 0 of a Get with kCapabilities.
struct FeatureCapabilities {
  static constexpr uint32_t kSaveable = 1u << 0;
  static constexpr uint32_t kPerNamespace = 1u << 1;
  static constexpr uint32_t kChangeable = 1u << 2;
};

struct GetFeaturesFields {
  Feature feature{};                               // FID
  FeatureSelect select = FeatureSelect::kCurrent;  // SEL; values above 3 are reserved
  uint32_t value = 0;                              // dword 11, which some features read

  static constexpr GetFeaturesFields decode(const Sqe& sqe) {
    return {.feature = static_cast<Feature>(bits<7, 0>(sqe.cdw10)),
            .select = static_cast<FeatureSelect>(bits<10, 8>(sqe.cdw10)),
            .value = sqe.cdw11};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<7, 0>(static_cast<uint8_t>(feature)) |
                to_bits32<10, 8>(static_cast<uint8_t>(select));
    sqe.cdw11 = value;
  }
  friend constexpr bool operator==(const GetFeaturesFields&, const GetFeaturesFields&) = default;
};

struct SetFeaturesFields {
  Feature feature{};   // FID
  bool save = false;   // SV
  uint32_t value = 0;  // dword 11

  static constexpr SetFeaturesFields decode(const Sqe& sqe) {
    return {.feature = static_cast<Feature>(bits<7, 0>(sqe.cdw10)),
            .save = bit<31>(sqe.cdw10),
            .value = sqe.cdw11};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<7, 0>(static_cast<uint8_t>(feature)) | to_bits32<31, 31>(save);
    sqe.cdw11 = value;
  }
  friend constexpr bool operator==(const SetFeaturesFields&, const SetFeaturesFields&) = default;
};

// 01h
struct Arbitration {
  uint8_t burst = 7;          // AB: 2 ^ this commands; 7 is no limit
  uint8_t low_weight = 0;     // LPW: zero-based
  uint8_t medium_weight = 0;  // MPW
  uint8_t high_weight = 0;    // HPW

  static constexpr Arbitration decode(uint32_t value) {
    return {.burst = static_cast<uint8_t>(bits<2, 0>(value)),
            .low_weight = static_cast<uint8_t>(bits<15, 8>(value)),
            .medium_weight = static_cast<uint8_t>(bits<23, 16>(value)),
            .high_weight = static_cast<uint8_t>(bits<31, 24>(value))};
  }
  constexpr uint32_t encode() const {
    return to_bits32<2, 0>(burst) | to_bits32<15, 8>(low_weight) |
           to_bits32<23, 16>(medium_weight) | to_bits32<31, 24>(high_weight);
  }
};

// 02h
struct PowerManagement {
  uint8_t state = 0;     // PS
  uint8_t workload = 0;  // WH

  static constexpr PowerManagement decode(uint32_t value) {
    return {.state = static_cast<uint8_t>(bits<4, 0>(value)),
            .workload = static_cast<uint8_t>(bits<7, 5>(value))};
  }
  constexpr uint32_t encode() const { return to_bits32<4, 0>(state) | to_bits32<7, 5>(workload); }
};

// 04h
struct TemperatureThreshold {
  uint16_t kelvin = 0;  // TMPTH
  uint8_t sensor = 0;   // TMPSEL: 0 is the composite temperature, 1 to 8 a sensor, 15 all
  uint8_t kind = 0;     // THSEL: 0 is over, 1 under

  static constexpr TemperatureThreshold decode(uint32_t value) {
    return {.kelvin = static_cast<uint16_t>(bits<15, 0>(value)),
            .sensor = static_cast<uint8_t>(bits<19, 16>(value)),
            .kind = static_cast<uint8_t>(bits<21, 20>(value))};
  }
  constexpr uint32_t encode() const {
    return to_bits32<15, 0>(kelvin) | to_bits32<19, 16>(sensor) | to_bits32<21, 20>(kind);
  }
};

// 05h
struct ErrorRecovery {
  uint16_t retry_100ms = 0;        // TLER: 0 is no limit
  bool deallocated_error = false;  // DULBE

  static constexpr ErrorRecovery decode(uint32_t value) {
    return {.retry_100ms = static_cast<uint16_t>(bits<15, 0>(value)),
            .deallocated_error = bit<16>(value)};
  }
  constexpr uint32_t encode() const {
    return to_bits32<15, 0>(retry_100ms) | to_bits32<16, 16>(deallocated_error);
  }
};

// 06h
struct WriteCache {
  static constexpr uint32_t kEnabled = 1u << 0;  // WCE
};

// 07h, the same form in what is asked and what is granted. FFFFh is not allowed.
struct NumberOfQueues {
  uint16_t submission = 0;  // NSQR, NSQA: I/O queues, zero-based
  uint16_t completion = 0;  // NCQR, NCQA

  static constexpr NumberOfQueues decode(uint32_t value) {
    return {.submission = static_cast<uint16_t>(bits<15, 0>(value)),
            .completion = static_cast<uint16_t>(bits<31, 16>(value))};
  }
  constexpr uint32_t encode() const {
    return to_bits32<15, 0>(submission) | to_bits32<31, 16>(completion);
  }
};

// 08h
struct InterruptCoalescing {
  uint8_t threshold = 0;   // THR: completions that should make one interrupt, zero-based
  uint8_t time_100us = 0;  // TIME: how long one may wait for others; 0 is not at all

  static constexpr InterruptCoalescing decode(uint32_t value) {
    return {.threshold = static_cast<uint8_t>(bits<7, 0>(value)),
            .time_100us = static_cast<uint8_t>(bits<15, 8>(value))};
  }
  constexpr uint32_t encode() const {
    return to_bits32<7, 0>(threshold) | to_bits32<15, 8>(time_100us);
  }
  friend constexpr bool operator==(const InterruptCoalescing&,
                                   const InterruptCoalescing&) = default;
};

// 09h; of a Get, dword 11 says which vector.
struct InterruptVector {
  uint16_t vector = 0;   // IV
  bool at_once = false;  // CD: it does not take part in coalescing

  static constexpr InterruptVector decode(uint32_t value) {
    return {.vector = static_cast<uint16_t>(bits<15, 0>(value)), .at_once = bit<16>(value)};
  }
  constexpr uint32_t encode() const {
    return to_bits32<15, 0>(vector) | to_bits32<16, 16>(at_once);
  }
};

// 0Ah
struct WriteAtomicity {
  static constexpr uint32_t kPowerFailOnly = 1u << 0;  // DN: AWUN need not hold, only AWUPF
};

// 0Bh: bits 7:0 are those of CriticalWarning, the rest those of EventMask.

// 0Fh: the value is the time-out in milliseconds, 0 for none.

// 16h: data of Host Behavior Support.
struct HostBehavior {
  uint8_t retry_delay = 0;           // ACRE: the host understands CRD
  uint8_t telemetry_area4 = 0;       // ETDAS
  uint8_t extended_lba_formats = 0;  // LBAFEE
  Reserved<509> unused3{};
};
static_assert(sizeof(HostBehavior) == 512);
static_assert(offsetof(HostBehavior, extended_lba_formats) == 2);

// 81h: data are 8 bytes, or 16 with this bit, which Fabrics demands.
inline constexpr uint32_t kHostIdExtended = 1u << 0;  // EXHID
struct HostIdData {
  std::array<uint8_t, 16> id{};
};
static_assert(sizeof(HostIdData) == 16);

// 82h: a bit set keeps the notice from being reported.
struct ReservationNoticeMask {
  static constexpr uint32_t kRegistrationPreempted = 1u << 1;  // REGPRE
  static constexpr uint32_t kReservationReleased = 1u << 2;    // RESREL
  static constexpr uint32_t kReservationPreempted = 1u << 3;   // RESPRE
};

// 83h
inline constexpr uint32_t kPersistThroughPowerLoss = 1u << 0;  // PTPL

}  // namespace cairn::nvme
