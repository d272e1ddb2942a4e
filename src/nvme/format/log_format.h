// SPDX-License-Identifier: Apache-2.0
// Get Log Page (NVMe Base 2.0, 5.16) and the pages that are not about paths or discovery: errors,
// health, firmware, changed namespaces, command effects and reservation notices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// LID
enum class LogPage : uint8_t {
  kSupported = 0x00,
  kError = 0x01,
  kHealth = 0x02,
  kFirmware = 0x03,
  kChangedNamespaces = 0x04,
  kCommandEffects = 0x05,
  kSelfTest = 0x06,
  kTelemetryHost = 0x07,
  kTelemetryController = 0x08,
  kEnduranceGroup = 0x09,
  kAna = 0x0c,
  kPersistentEvent = 0x0d,
  kFeatureEffects = 0x12,
  kDiscovery = 0x70,
  kReservation = 0x80,
  kSanitize = 0x81,
};

struct GetLogFields {
  LogPage page{};             // LID
  uint8_t specific = 0;       // LSP
  bool retain_event = false;  // RAE: leave the page's event masked
  uint32_t dwords = 0;        // NUMD: zero-based
  uint16_t specific_id = 0;   // LSI
  uint64_t offset = 0;        // LPO: bytes, or an index with by_index
  uint8_t uuid_index = 0;
  bool by_index = false;  // OT
  uint8_t csi = 0;        // CSI

  // Bytes asked for: up to 16 GiB.
  constexpr uint64_t length() const { return (uint64_t{dwords} + 1) * 4; }

  static constexpr GetLogFields decode(const Sqe& sqe) {
    return {.page = static_cast<LogPage>(bits<7, 0>(sqe.cdw10)),
            .specific = static_cast<uint8_t>(bits<14, 8>(sqe.cdw10)),
            .retain_event = bit<15>(sqe.cdw10),
            .dwords = bits<15, 0>(sqe.cdw11) << 16 | bits<31, 16>(sqe.cdw10),
            .specific_id = static_cast<uint16_t>(bits<31, 16>(sqe.cdw11)),
            .offset = uint64_t{sqe.cdw13} << 32 | sqe.cdw12,
            .uuid_index = static_cast<uint8_t>(bits<6, 0>(sqe.cdw14)),
            .by_index = bit<23>(sqe.cdw14),
            .csi = static_cast<uint8_t>(bits<31, 24>(sqe.cdw14))};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<7, 0>(static_cast<uint8_t>(page)) | to_bits32<14, 8>(specific) |
                to_bits32<15, 15>(retain_event) | to_bits32<31, 16>(dwords & 0xffff);
    sqe.cdw11 = to_bits32<15, 0>(dwords >> 16) | to_bits32<31, 16>(specific_id);
    sqe.cdw12 = static_cast<uint32_t>(offset);
    sqe.cdw13 = static_cast<uint32_t>(offset >> 32);
    sqe.cdw14 = to_bits32<6, 0>(uuid_index) | to_bits32<23, 23>(by_index) | to_bits32<31, 24>(csi);
  }
  friend constexpr bool operator==(const GetLogFields&, const GetLogFields&) = default;
};

// LID 01h, newest entry first; entries that never were have error_count 0.
struct ErrorEntry {
  Le64 error_count;  // rises with each error, over all entries
  Le16 sqid;         // FFFFh if the error belongs to no command
  Le16 cid;          // likewise
  Le16 status;       // as in a completion, with its phase tag
  Le16 parameter;    // byte in bits 7:0 and bit in 10:8 of the entry; FFFFh if none
  Le64 lba;
  Le32 nsid;
  uint8_t vendor_page = 0;  // a vendor log page that tells more; 0 is none
  uint8_t transport = 0;    // TRTYPE; 3 is TCP
  Reserved<2> unused30{};
  Le64 command_specific;
  Le16 transport_specific;
  Reserved<22> unused42{};
};
static_assert(sizeof(ErrorEntry) == 64);
static_assert(offsetof(ErrorEntry, sqid) == 8);
static_assert(offsetof(ErrorEntry, cid) == 10);
static_assert(offsetof(ErrorEntry, status) == 12);
static_assert(offsetof(ErrorEntry, parameter) == 14);
static_assert(offsetof(ErrorEntry, lba) == 16);
static_assert(offsetof(ErrorEntry, nsid) == 24);
static_assert(offsetof(ErrorEntry, vendor_page) == 28);
static_assert(offsetof(ErrorEntry, transport) == 29);
static_assert(offsetof(ErrorEntry, command_specific) == 32);
static_assert(offsetof(ErrorEntry, transport_specific) == 40);

// Critical warnings of the health page, and the same bits in Asynchronous Event Configuration.
struct CriticalWarning {
  static constexpr uint8_t kSpare = 1 << 0;
  static constexpr uint8_t kTemperature = 1 << 1;
  static constexpr uint8_t kReliability = 1 << 2;
  static constexpr uint8_t kReadOnly = 1 << 3;
  static constexpr uint8_t kBackupFailed = 1 << 4;
};

// LID 02h: SMART / health information.
struct HealthPage {
  uint8_t critical_warning = 0;
  Le16 temperature_kelvin;
  uint8_t spare_percent = 0;
  uint8_t spare_threshold_percent = 0;
  uint8_t used_percent = 0;  // may exceed 100
  uint8_t endurance_group_warning = 0;
  Reserved<25> unused7{};
  Le128 data_units_read;     // of 1000 blocks of 512 bytes, rounded up
  Le128 data_units_written;  // likewise
  Le128 host_reads;          // commands
  Le128 host_writes;         // commands
  Le128 busy_minutes;
  Le128 power_cycles;
  Le128 power_on_hours;
  Le128 unsafe_shutdowns;
  Le128 media_errors;
  Le128 error_log_entries;  // over the controller's life
  Le32 warning_temperature_minutes;
  Le32 critical_temperature_minutes;
  std::array<Le16, 8> sensor_kelvin{};  // 0 is no such sensor
  Le32 thermal1_transitions;
  Le32 thermal2_transitions;
  Le32 thermal1_seconds;
  Le32 thermal2_seconds;
  Reserved<280> unused232{};
};
static_assert(sizeof(HealthPage) == 512);
static_assert(offsetof(HealthPage, temperature_kelvin) == 1);
static_assert(offsetof(HealthPage, spare_percent) == 3);
static_assert(offsetof(HealthPage, spare_threshold_percent) == 4);
static_assert(offsetof(HealthPage, used_percent) == 5);
static_assert(offsetof(HealthPage, data_units_read) == 32);
static_assert(offsetof(HealthPage, data_units_written) == 48);
static_assert(offsetof(HealthPage, host_reads) == 64);
static_assert(offsetof(HealthPage, host_writes) == 80);
static_assert(offsetof(HealthPage, busy_minutes) == 96);
static_assert(offsetof(HealthPage, power_cycles) == 112);
static_assert(offsetof(HealthPage, power_on_hours) == 128);
static_assert(offsetof(HealthPage, unsafe_shutdowns) == 144);
static_assert(offsetof(HealthPage, media_errors) == 160);
static_assert(offsetof(HealthPage, error_log_entries) == 176);
static_assert(offsetof(HealthPage, warning_temperature_minutes) == 192);
static_assert(offsetof(HealthPage, critical_temperature_minutes) == 196);
static_assert(offsetof(HealthPage, sensor_kelvin) == 200);
static_assert(offsetof(HealthPage, thermal1_transitions) == 216);
static_assert(offsetof(HealthPage, thermal2_seconds) == 228);

// LID 03h: firmware slots.
struct FirmwarePage {
  uint8_t active = 0;  // AFI: slot now in bits 2:0, slot after the next reset in 6:4
  Reserved<7> unused1{};
  std::array<Ascii<8>, 7> revisions{};  // FRS1 to FRS7; zeroes in slots that hold none
  Reserved<448> unused64{};
};
static_assert(sizeof(FirmwarePage) == 512);
static_assert(offsetof(FirmwarePage, revisions) == 8);

// LID 04h: identifiers of namespaces that changed since the page was last read, ascending. More
// than fit are told as kBroadcastNsid in the first place and zeroes behind it.
struct ChangedNamespacesPage {
  std::array<Le32, 1024> nsids{};
};
static_assert(sizeof(ChangedNamespacesPage) == 4096);

// What a command may change.
struct Effect {
  static constexpr uint32_t kSupported = 1u << 0;           // CSUPP
  static constexpr uint32_t kContent = 1u << 1;             // LBCC: logical block content
  static constexpr uint32_t kNamespace = 1u << 2;           // NCC: namespace capabilities
  static constexpr uint32_t kNamespaceInventory = 1u << 3;  // NIC
  static constexpr uint32_t kController = 1u << 4;          // CCC: controller capabilities
  static constexpr uint32_t kAloneOnNamespace = 1u << 16;   // CSE
  static constexpr uint32_t kAlone = 2u << 16;              // CSE: alone in the subsystem
};

// LID 05h: commands supported and effects, by opcode.
struct CommandEffectsPage {
  std::array<Le32, 256> admin{};  // ACS
  std::array<Le32, 256> io{};     // IOCS
  Reserved<2048> unused2048{};
};
static_assert(sizeof(CommandEffectsPage) == 4096);
static_assert(offsetof(CommandEffectsPage, io) == 1024);

enum class ReservationNotice : uint8_t {
  kEmpty = 0,
  kRegistrationPreempted = 1,
  kReservationReleased = 2,
  kReservationPreempted = 3,
};

// LID 80h: the oldest notice not yet read.
struct ReservationNoticePage {
  Le64 count;                // LPC: notices so far; skips 0 when it wraps
  ReservationNotice type{};  // RNLPT
  uint8_t available = 0;     // NALP: notices left behind this one, at most 255
  Reserved<2> unused10{};
  Le32 nsid;
  Reserved<48> unused16{};
};
static_assert(sizeof(ReservationNoticePage) == 64);
static_assert(offsetof(ReservationNoticePage, type) == 8);
static_assert(offsetof(ReservationNoticePage, available) == 9);
static_assert(offsetof(ReservationNoticePage, nsid) == 12);

}  // namespace cairn::nvme
