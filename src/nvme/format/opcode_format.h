// SPDX-License-Identifier: Apache-2.0
// Which command a submission entry holds: opcodes of the admin queue, of I/O queues, and of
// Fabrics.
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn::nvme {

// NVMe Base 2.0, 5. Valid on the admin queue.
enum class AdminOpcode : uint8_t {
  kDeleteSubmissionQueue = 0x00,
  kCreateSubmissionQueue = 0x01,
  kGetLogPage = 0x02,
  kDeleteCompletionQueue = 0x04,
  kCreateCompletionQueue = 0x05,
  kIdentify = 0x06,
  kAbort = 0x08,
  kSetFeatures = 0x09,
  kGetFeatures = 0x0a,
  kAsynchronousEventRequest = 0x0c,
  kNamespaceManagement = 0x0d,
  kFirmwareCommit = 0x10,
  kFirmwareDownload = 0x11,
  kDeviceSelfTest = 0x14,
  kNamespaceAttachment = 0x15,
  kKeepAlive = 0x18,
  kDirectiveSend = 0x19,
  kDirectiveReceive = 0x1a,
  kVirtualizationManagement = 0x1c,
  kManagementSend = 0x1d,
  kManagementReceive = 0x1e,
  kCapacityManagement = 0x20,
  kLockdown = 0x24,
  kDoorbellBufferConfig = 0x7c,
  kFabrics = 0x7f,
  kFormatNvm = 0x80,
  kSecuritySend = 0x81,
  kSecurityReceive = 0x82,
  kSanitize = 0x84,
  kGetLbaStatus = 0x86,
  kVendorSend = 0xc1,  // ours: it brings data to the controller
};

// NVMe Base 2.0, 7, and NVM Command Set 1.0, 3.2. Valid on I/O queues.
enum class IoOpcode : uint8_t {
  kFlush = 0x00,
  kWrite = 0x01,
  kRead = 0x02,
  kWriteUncorrectable = 0x04,
  kCompare = 0x05,
  kWriteZeroes = 0x08,
  kDatasetManagement = 0x09,
  kVerify = 0x0c,
  kReservationRegister = 0x0d,
  kReservationReport = 0x0e,
  kReservationAcquire = 0x11,
  kReservationRelease = 0x15,
  kCopy = 0x19,
  kFabrics = 0x7f,
  kReplicatedWrite = 0x81,  // ours: replicate_format.h
};

constexpr bool is_reservation(IoOpcode opcode) {
  return opcode == IoOpcode::kReservationRegister || opcode == IoOpcode::kReservationReport ||
         opcode == IoOpcode::kReservationAcquire || opcode == IoOpcode::kReservationRelease;
}

// The opcode of every Fabrics command, on any queue; byte 4 (FCTYPE) says which.
inline constexpr uint8_t kFabricsOpcode = 0x7f;

// NVMe Base 2.0, 6.
enum class FabricsType : uint8_t {
  kPropertySet = 0x00,
  kConnect = 0x01,
  kPropertyGet = 0x04,
  kAuthenticationSend = 0x05,
  kAuthenticationReceive = 0x06,
  kDisconnect = 0x08,
};

// Which way data goes: the low two bits of an opcode, or of FCTYPE.
enum class Transfer : uint8_t {
  kNone = 0,
  kHostToController = 1,
  kControllerToHost = 2,
  kBoth = 3,
};
constexpr Transfer transfer_of(uint8_t opcode) { return static_cast<Transfer>(opcode & 3); }
constexpr Transfer transfer_of(AdminOpcode opcode) {
  return transfer_of(static_cast<uint8_t>(opcode));
}
constexpr Transfer transfer_of(IoOpcode opcode) {
  return transfer_of(static_cast<uint8_t>(opcode));
}
constexpr Transfer transfer_of(FabricsType type) { return transfer_of(static_cast<uint8_t>(type)); }

// Lower-case words: "get log page"; "unknown" for values not listed above.
std::string_view name(AdminOpcode opcode);
std::string_view name(IoOpcode opcode);
std::string_view name(FabricsType type);

}  // namespace cairn::nvme
