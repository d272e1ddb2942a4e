// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "nvme/format/status_format.h"

namespace cairn::nvme {
namespace {

struct Named {
  StatusCode code;
  const char* name;
};

constexpr Named kNames[] = {
    {StatusCode::kSuccess, "success"},
    {StatusCode::kInvalidOpcode, "invalid opcode"},
    {StatusCode::kInvalidField, "invalid field"},
    {StatusCode::kCommandIdConflict, "command id conflict"},
    {StatusCode::kDataTransferError, "data transfer error"},
    {StatusCode::kAbortedPowerLoss, "aborted due to power loss notification"},
    {StatusCode::kInternalError, "internal error"},
    {StatusCode::kAbortRequested, "abort requested"},
    {StatusCode::kAbortedQueueDeletion, "aborted due to queue deletion"},
    {StatusCode::kAbortedFailedFused, "aborted due to failed fused command"},
    {StatusCode::kAbortedMissingFused, "aborted due to missing fused command"},
    {StatusCode::kInvalidNamespaceOrFormat, "invalid namespace or format"},
    {StatusCode::kCommandSequenceError, "command sequence error"},
    {StatusCode::kInvalidSglSegment, "invalid SGL segment descriptor"},
    {StatusCode::kInvalidSglCount, "invalid number of SGL descriptors"},
    {StatusCode::kDataSglLengthInvalid, "data SGL length invalid"},
    {StatusCode::kMetadataSglLengthInvalid, "metadata SGL length invalid"},
    {StatusCode::kSglDescriptorTypeInvalid, "SGL descriptor type invalid"},
    {StatusCode::kInvalidUseOfControllerMemory, "invalid use of controller memory buffer"},
    {StatusCode::kPrpOffsetInvalid, "PRP offset invalid"},
    {StatusCode::kAtomicWriteUnitExceeded, "atomic write unit exceeded"},
    {StatusCode::kOperationDenied, "operation denied"},
    {StatusCode::kSglOffsetInvalid, "SGL offset invalid"},
    {StatusCode::kHostIdInconsistentFormat, "host identifier inconsistent format"},
    {StatusCode::kKeepAliveExpired, "keep alive timer expired"},
    {StatusCode::kKeepAliveTimeoutInvalid, "keep alive timeout invalid"},
    {StatusCode::kAbortedPreempt, "aborted due to preempt and abort"},
    {StatusCode::kSanitizeFailed, "sanitize failed"},
    {StatusCode::kSanitizeInProgress, "sanitize in progress"},
    {StatusCode::kSglGranularityInvalid, "SGL data block granularity invalid"},
    {StatusCode::kNotSupportedInControllerMemory, "not supported in controller memory buffer"},
    {StatusCode::kNamespaceWriteProtected, "namespace is write protected"},
    {StatusCode::kCommandInterrupted, "command interrupted"},
    {StatusCode::kTransientTransportError, "transient transport error"},
    {StatusCode::kProhibitedByLockdown, "prohibited by lockdown"},
    {StatusCode::kMediaNotReady, "media not ready"},
    {StatusCode::kLbaOutOfRange, "LBA out of range"},
    {StatusCode::kCapacityExceeded, "capacity exceeded"},
    {StatusCode::kNamespaceNotReady, "namespace not ready"},
    {StatusCode::kReservationConflict, "reservation conflict"},
    {StatusCode::kFormatInProgress, "format in progress"},
    {StatusCode::kCompletionQueueInvalid, "completion queue invalid"},
    {StatusCode::kInvalidQueueId, "invalid queue identifier"},
    {StatusCode::kInvalidQueueSize, "invalid queue size"},
    {StatusCode::kAbortLimitExceeded, "abort command limit exceeded"},
    {StatusCode::kEventRequestLimitExceeded, "asynchronous event request limit exceeded"},
    {StatusCode::kInvalidFirmwareSlot, "invalid firmware slot"},
    {StatusCode::kInvalidFirmwareImage, "invalid firmware image"},
    {StatusCode::kInvalidInterruptVector, "invalid interrupt vector"},
    {StatusCode::kInvalidLogPage, "invalid log page"},
    {StatusCode::kInvalidFormat, "invalid format"},
    {StatusCode::kFirmwareNeedsConventionalReset, "firmware needs a conventional reset"},
    {StatusCode::kInvalidQueueDeletion, "invalid queue deletion"},
    {StatusCode::kFeatureNotSaveable, "feature not saveable"},
    {StatusCode::kFeatureNotChangeable, "feature not changeable"},
    {StatusCode::kFeatureNotNamespaceSpecific, "feature not namespace specific"},
    {StatusCode::kFirmwareNeedsSubsystemReset, "firmware needs a subsystem reset"},
    {StatusCode::kFirmwareNeedsControllerReset, "firmware needs a controller reset"},
    {StatusCode::kFirmwareNeedsMaximumTime, "firmware activation exceeds the maximum time"},
    {StatusCode::kFirmwareActivationProhibited, "firmware activation prohibited"},
    {StatusCode::kOverlappingRange, "overlapping range"},
    {StatusCode::kNamespaceInsufficientCapacity, "namespace insufficient capacity"},
    {StatusCode::kNamespaceIdUnavailable, "namespace identifier unavailable"},
    {StatusCode::kNamespaceAlreadyAttached, "namespace already attached"},
    {StatusCode::kNamespaceIsPrivate, "namespace is private"},
    {StatusCode::kNamespaceNotAttached, "namespace not attached"},
    {StatusCode::kThinProvisioningNotSupported, "thin provisioning not supported"},
    {StatusCode::kControllerListInvalid, "controller list invalid"},
    {StatusCode::kSelfTestInProgress, "device self-test in progress"},
    {StatusCode::kBootPartitionWriteProhibited, "boot partition write prohibited"},
    {StatusCode::kInvalidControllerId, "invalid controller identifier"},
    {StatusCode::kInvalidSecondaryControllerState, "invalid secondary controller state"},
    {StatusCode::kInvalidControllerResources, "invalid number of controller resources"},
    {StatusCode::kInvalidResourceId, "invalid resource identifier"},
    {StatusCode::kSanitizeProhibited, "sanitize prohibited"},
    {StatusCode::kAnaGroupIdInvalid, "ANA group identifier invalid"},
    {StatusCode::kAnaAttachFailed, "ANA attach failed"},
    {StatusCode::kInsufficientCapacity, "insufficient capacity"},
    {StatusCode::kNamespaceAttachmentLimitExceeded, "namespace attachment limit exceeded"},
    {StatusCode::kProhibitionNotSupported, "prohibition of the command not supported"},
    {StatusCode::kCommandSetNotSupported, "I/O command set not supported"},
    {StatusCode::kCommandSetNotEnabled, "I/O command set not enabled"},
    {StatusCode::kCommandSetCombinationRejected, "I/O command set combination rejected"},
    {StatusCode::kInvalidCommandSet, "invalid I/O command set"},
    {StatusCode::kIdentifierUnavailable, "identifier unavailable"},
    {StatusCode::kConflictingAttributes, "conflicting attributes"},
    {StatusCode::kInvalidProtectionInformation, "invalid protection information"},
    {StatusCode::kReadOnlyRange, "write to read only range"},
    {StatusCode::kCommandSizeLimitExceeded, "command size limit exceeded"},
    {StatusCode::kConnectInvalidHost, "connect invalid host"},
    {StatusCode::kDisconnectInvalidQueueType, "disconnect invalid queue type"},
    {StatusCode::kDiscoverRestart, "discover restart"},
    {StatusCode::kAuthenticationRequired, "authentication required"},
    {StatusCode::kWriteFault, "write fault"},
    {StatusCode::kUnrecoveredReadError, "unrecovered read error"},
    {StatusCode::kGuardCheckError, "guard check error"},
    {StatusCode::kApplicationTagCheckError, "application tag check error"},
    {StatusCode::kReferenceTagCheckError, "reference tag check error"},
    {StatusCode::kCompareFailure, "compare failure"},
    {StatusCode::kAccessDenied, "access denied"},
    {StatusCode::kDeallocatedBlock, "deallocated or unwritten logical block"},
    {StatusCode::kStorageTagCheckError, "storage tag check error"},
    {StatusCode::kInternalPathError, "internal path error"},
    {StatusCode::kAnaPersistentLoss, "ANA persistent loss"},
    {StatusCode::kAnaInaccessible, "ANA inaccessible"},
    {StatusCode::kAnaTransition, "ANA transition"},
    {StatusCode::kControllerPathingError, "controller pathing error"},
    {StatusCode::kHostPathingError, "host pathing error"},
    {StatusCode::kAbortedByHost, "aborted by host"},
};
static_assert(std::ranges::is_sorted(kNames, {}, &Named::code));

constexpr Named kFabricsNames[] = {
    {StatusCode::kConnectIncompatibleFormat, "connect incompatible format"},
    {StatusCode::kConnectControllerBusy, "connect controller busy"},
    {StatusCode::kConnectInvalidParameters, "connect invalid parameters"},
    {StatusCode::kConnectRestartDiscovery, "connect restart discovery"},
};

// nullptr if the table has no such code.
const char* find(std::span<const Named> names, StatusCode code) {
  const auto found = std::ranges::lower_bound(names, code, {}, &Named::code);
  return found != names.end() && found->code == code ? found->name : nullptr;
}

}  // namespace

std::string_view name(StatusCode code, StatusContext context) {
  if (context == StatusContext::kFabrics) {
    if (const char* found = find(kFabricsNames, code)) return found;
  }
  const char* found = find(kNames, code);
  return found != nullptr ? found : "unknown";
}

std::string text(Status status, StatusContext context) {
  std::string out = fmt::format("{} ({:03x}h", name(status.code(), context),
                                static_cast<uint16_t>(status.code()));
  if (status.retry_delay() != 0) {
    fmt::format_to(std::back_inserter(out), ", retry delay {}", status.retry_delay());
  }
  if (status.more()) out += ", more";
  if (status.do_not_retry()) out += ", do not retry";
  return out + ")";
}

}  // namespace cairn::nvme
