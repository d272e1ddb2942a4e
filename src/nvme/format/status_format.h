// SPDX-License-Identifier: Apache-2.0
// How a command ended: the status field of a completion (NVMe Base 2.0, 3.3.3.2.1 and its figures).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nvme/format/field.h"

namespace cairn::nvme {

// Status code type (SCT, the hundreds) and status code (SC) as one number, the way people write
// them: 181h is type 1, code 81h. Codes 180h to 183h mean one thing for Fabrics commands and
// another for commands of the NVM command set.
enum class StatusCode : uint16_t {
  // Generic command status.
  kSuccess = 0x000,
  kInvalidOpcode = 0x001,
  kInvalidField = 0x002,
  kCommandIdConflict = 0x003,
  kDataTransferError = 0x004,
  kAbortedPowerLoss = 0x005,
  kInternalError = 0x006,
  kAbortRequested = 0x007,
  kAbortedQueueDeletion = 0x008,
  kAbortedFailedFused = 0x009,
  kAbortedMissingFused = 0x00a,
  kInvalidNamespaceOrFormat = 0x00b,
  kCommandSequenceError = 0x00c,
  kInvalidSglSegment = 0x00d,
  kInvalidSglCount = 0x00e,
  kDataSglLengthInvalid = 0x00f,
  kMetadataSglLengthInvalid = 0x010,
  kSglDescriptorTypeInvalid = 0x011,
  kInvalidUseOfControllerMemory = 0x012,
  kPrpOffsetInvalid = 0x013,
  kAtomicWriteUnitExceeded = 0x014,
  kOperationDenied = 0x015,
  kSglOffsetInvalid = 0x016,
  kHostIdInconsistentFormat = 0x018,
  kKeepAliveExpired = 0x019,
  kKeepAliveTimeoutInvalid = 0x01a,
  kAbortedPreempt = 0x01b,
  kSanitizeFailed = 0x01c,
  kSanitizeInProgress = 0x01d,
  kSglGranularityInvalid = 0x01e,
  kNotSupportedInControllerMemory = 0x01f,
  kNamespaceWriteProtected = 0x020,
  kCommandInterrupted = 0x021,
  kTransientTransportError = 0x022,
  kProhibitedByLockdown = 0x023,
  kMediaNotReady = 0x024,
  kLbaOutOfRange = 0x080,
  kCapacityExceeded = 0x081,
  kNamespaceNotReady = 0x082,
  kReservationConflict = 0x083,
  kFormatInProgress = 0x084,

  // Command specific status.
  kCompletionQueueInvalid = 0x100,
  kInvalidQueueId = 0x101,
  kInvalidQueueSize = 0x102,
  kAbortLimitExceeded = 0x103,
  kEventRequestLimitExceeded = 0x105,
  kInvalidFirmwareSlot = 0x106,
  kInvalidFirmwareImage = 0x107,
  kInvalidInterruptVector = 0x108,
  kInvalidLogPage = 0x109,
  kInvalidFormat = 0x10a,
  kFirmwareNeedsConventionalReset = 0x10b,
  kInvalidQueueDeletion = 0x10c,
  kFeatureNotSaveable = 0x10d,
  kFeatureNotChangeable = 0x10e,
  kFeatureNotNamespaceSpecific = 0x10f,
  kFirmwareNeedsSubsystemReset = 0x110,
  kFirmwareNeedsControllerReset = 0x111,
  kFirmwareNeedsMaximumTime = 0x112,
  kFirmwareActivationProhibited = 0x113,
  kOverlappingRange = 0x114,
  kNamespaceInsufficientCapacity = 0x115,
  kNamespaceIdUnavailable = 0x116,
  kNamespaceAlreadyAttached = 0x118,
  kNamespaceIsPrivate = 0x119,
  kNamespaceNotAttached = 0x11a,
  kThinProvisioningNotSupported = 0x11b,
  kControllerListInvalid = 0x11c,
  kSelfTestInProgress = 0x11d,
  kBootPartitionWriteProhibited = 0x11e,
  kInvalidControllerId = 0x11f,
  kInvalidSecondaryControllerState = 0x120,
  kInvalidControllerResources = 0x121,
  kInvalidResourceId = 0x122,
  kSanitizeProhibited = 0x123,
  kAnaGroupIdInvalid = 0x124,
  kAnaAttachFailed = 0x125,
  kInsufficientCapacity = 0x126,
  kNamespaceAttachmentLimitExceeded = 0x127,
  kProhibitionNotSupported = 0x128,
  kCommandSetNotSupported = 0x129,
  kCommandSetNotEnabled = 0x12a,
  kCommandSetCombinationRejected = 0x12b,
  kInvalidCommandSet = 0x12c,
  kIdentifierUnavailable = 0x12d,

  // Command specific, NVM command set.
  kConflictingAttributes = 0x180,
  kInvalidProtectionInformation = 0x181,
  kReadOnlyRange = 0x182,
  kCommandSizeLimitExceeded = 0x183,

  // Command specific, Fabrics commands and the discovery log.
  kConnectIncompatibleFormat = 0x180,
  kConnectControllerBusy = 0x181,
  kConnectInvalidParameters = 0x182,
  kConnectRestartDiscovery = 0x183,
  kConnectInvalidHost = 0x184,
  kDisconnectInvalidQueueType = 0x185,
  kDiscoverRestart = 0x190,
  kAuthenticationRequired = 0x191,

  // Media and data integrity errors.
  kWriteFault = 0x280,
  kUnrecoveredReadError = 0x281,
  kGuardCheckError = 0x282,
  kApplicationTagCheckError = 0x283,
  kReferenceTagCheckError = 0x284,
  kCompareFailure = 0x285,
  kAccessDenied = 0x286,
  kDeallocatedBlock = 0x287,
  kStorageTagCheckError = 0x288,

  // Path related status.
  kInternalPathError = 0x300,
  kAnaPersistentLoss = 0x301,
  kAnaInaccessible = 0x302,
  kAnaTransition = 0x303,
  kControllerPathingError = 0x360,
  kHostPathingError = 0x370,
  kAbortedByHost = 0x371,
};

enum class StatusType : uint8_t {
  kGeneric = 0,
  kCommandSpecific = 1,
  kMedia = 2,
  kPath = 3,
  kVendor = 7,
};

// A status code with its modifiers. Success by default.
class Status {
 public:
  constexpr Status() = default;
  constexpr Status(StatusCode code) : bits_(static_cast<uint16_t>(code)) {}
  // The 16 bits of a completion, whose bit 0 is the phase tag and is ignored.
  static constexpr Status from_wire(uint16_t field) {
    Status status;
    status.bits_ = field >> 1;
    return status;
  }
  // The 16 bits of a completion, phase tag 0 as in every capsule.
  constexpr uint16_t to_wire() const { return static_cast<uint16_t>(bits_ << 1); }

  constexpr StatusCode code() const { return static_cast<StatusCode>(bits<10, 0>(bits_)); }
  constexpr StatusType type() const { return static_cast<StatusType>(bits<10, 8>(bits_)); }
  constexpr bool ok() const { return code() == StatusCode::kSuccess; }

  // CRD: 0 is retry at once, 1 to 3 name the times CRDT1 to CRDT3 of Identify Controller.
  constexpr uint8_t retry_delay() const { return static_cast<uint8_t>(bits<12, 11>(bits_)); }
  // M: the error log holds an entry about this command.
  constexpr bool more() const { return bit<13>(bits_); }
  // DNR: the same command would fail again.
  constexpr bool do_not_retry() const { return bit<14>(bits_); }

  constexpr Status with_retry_delay(uint8_t crd) const {
    Status status = *this;
    status.bits_ = static_cast<uint16_t>((bits_ & ~(3u << 11)) | (crd & 3u) << 11);
    return status;
  }
  constexpr Status with_more() const { return with(1 << 13); }
  constexpr Status with_do_not_retry() const { return with(1 << 14); }

  friend constexpr bool operator==(Status, Status) = default;
  friend constexpr bool operator==(Status status, StatusCode code) { return status.code() == code; }

 private:
  constexpr Status with(uint16_t more) const {
    Status status = *this;
    status.bits_ |= more;
    return status;
  }
  uint16_t bits_ = 0;  // the field without its phase tag
};

// The code with DNR set, which is how most refusals end.
constexpr Status final_status(StatusCode code) { return Status(code).with_do_not_retry(); }

// Which of the two meanings codes 180h to 183h have.
enum class StatusContext : uint8_t { kNvm, kFabrics };

// Lower-case words: "invalid field". Unknown codes are "unknown".
std::string_view name(StatusCode code, StatusContext context = StatusContext::kNvm);

// "invalid field (002h, do not retry)". Allocates; not for the I/O path.
std::string text(Status status, StatusContext context = StatusContext::kNvm);

}  // namespace cairn::nvme
