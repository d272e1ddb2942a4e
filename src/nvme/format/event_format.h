// SPDX-License-Identifier: Apache-2.0
// Asynchronous events (NVMe Base 2.0, 5.2): dword 0 of a completed Asynchronous Event Request.
#pragma once

#include <cstdint>

#include "nvme/format/field.h"
#include "nvme/format/log_format.h"

namespace cairn::nvme {

enum class EventType : uint8_t {
  kError = 0,
  kHealth = 1,
  kNotice = 2,
  kCommandSet = 6,  // specific to the I/O command set
  kVendor = 7,
};

// Information of each type; see AsynchronousEvent::info.
struct ErrorEvent {
  static constexpr uint8_t kInvalidDoorbell = 0x00;
  static constexpr uint8_t kInvalidDoorbellValue = 0x01;
  static constexpr uint8_t kDiagnosticFailure = 0x02;
  static constexpr uint8_t kPersistentInternal = 0x03;
  static constexpr uint8_t kTransientInternal = 0x04;
  static constexpr uint8_t kFirmwareLoad = 0x05;
};
struct HealthEvent {
  static constexpr uint8_t kReliability = 0x00;
  static constexpr uint8_t kTemperature = 0x01;
  static constexpr uint8_t kSpare = 0x02;
};
struct NoticeEvent {
  static constexpr uint8_t kNamespaceAttributes = 0x00;
  static constexpr uint8_t kFirmwareActivation = 0x01;
  static constexpr uint8_t kTelemetry = 0x02;
  static constexpr uint8_t kAna = 0x03;
  static constexpr uint8_t kDiscoveryLog = 0xf0;
};
struct CommandSetEvent {
  static constexpr uint8_t kReservationNotice = 0x00;
  static constexpr uint8_t kSanitizeCompleted = 0x01;
};

struct AsynchronousEvent {
  EventType type{};
  uint8_t info = 0;
  LogPage page{};  // which log page to read, to learn more and to hear of the next such event

  static constexpr AsynchronousEvent decode(uint32_t dw0) {
    return {.type = static_cast<EventType>(bits<2, 0>(dw0)),
            .info = static_cast<uint8_t>(bits<15, 8>(dw0)),
            .page = static_cast<LogPage>(bits<23, 16>(dw0))};
  }
  constexpr uint32_t encode() const {
    return to_bits32<2, 0>(static_cast<uint8_t>(type)) | to_bits32<15, 8>(info) |
           to_bits32<23, 16>(static_cast<uint8_t>(page));
  }
  friend constexpr bool operator==(const AsynchronousEvent&, const AsynchronousEvent&) = default;
};

// The events a target here sends.
inline constexpr AsynchronousEvent kNamespacesChanged{
    EventType::kNotice, NoticeEvent::kNamespaceAttributes, LogPage::kChangedNamespaces};
inline constexpr AsynchronousEvent kAnaChanged{EventType::kNotice, NoticeEvent::kAna,
                                               LogPage::kAna};
inline constexpr AsynchronousEvent kDiscoveryChanged{EventType::kNotice, NoticeEvent::kDiscoveryLog,
                                                     LogPage::kDiscovery};
inline constexpr AsynchronousEvent kReservationNoticed{
    EventType::kCommandSet, CommandSetEvent::kReservationNotice, LogPage::kReservation};

}  // namespace cairn::nvme
