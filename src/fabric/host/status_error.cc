// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/status_error.h"

#include <cstdint>

namespace cairn::fabric {

using nvme::Status;
using nvme::StatusCode;
using nvme::StatusContext;
using nvme::StatusType;

namespace {

Errc fabrics_code(StatusCode code) {
  switch (code) {
    case StatusCode::kConnectControllerBusy:
      return Errc::kLimit;
    case StatusCode::kConnectRestartDiscovery:
      return Errc::kNotFound;
    case StatusCode::kConnectInvalidHost:
    case StatusCode::kAuthenticationRequired:
      return Errc::kDenied;
    case StatusCode::kConnectIncompatibleFormat:
      return Errc::kUnsupported;
    default:
      return Errc::kInvalid;
  }
}

Errc generic_code(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidOpcode:
      return Errc::kUnsupported;
    case StatusCode::kInvalidNamespaceOrFormat:
      return Errc::kNotFound;
    case StatusCode::kCapacityExceeded:
      return Errc::kNoSpace;
    case StatusCode::kReservationConflict:
    case StatusCode::kAbortedPreempt:
    case StatusCode::kNamespaceWriteProtected:
    case StatusCode::kOperationDenied:
    case StatusCode::kProhibitedByLockdown:
      return Errc::kDenied;
    case StatusCode::kInternalError:
    case StatusCode::kDataTransferError:
    case StatusCode::kTransientTransportError:
    case StatusCode::kCommandInterrupted:
    case StatusCode::kAbortedPowerLoss:
    case StatusCode::kAbortRequested:
    case StatusCode::kAbortedQueueDeletion:
    case StatusCode::kAbortedFailedFused:
    case StatusCode::kAbortedMissingFused:
    case StatusCode::kNamespaceNotReady:
    case StatusCode::kMediaNotReady:
    case StatusCode::kFormatInProgress:
    case StatusCode::kSanitizeFailed:
    case StatusCode::kSanitizeInProgress:
      return Errc::kIo;
    default:
      return Errc::kInvalid;
  }
}

Errc specific_code(StatusCode code, StatusContext context) {
  if (context == StatusContext::kFabrics) return fabrics_code(code);
  switch (code) {
    case StatusCode::kReadOnlyRange:
      return Errc::kDenied;
    case StatusCode::kNamespaceInsufficientCapacity:
      return Errc::kNoSpace;
    case StatusCode::kAbortLimitExceeded:
    case StatusCode::kEventRequestLimitExceeded:
      return Errc::kLimit;
    case StatusCode::kInvalidLogPage:
      return Errc::kUnsupported;
    default:
      return Errc::kInvalid;
  }
}

Errc media_code(StatusCode code) {
  switch (code) {
    case StatusCode::kCompareFailure:
      return Errc::kMismatch;
    case StatusCode::kAccessDenied:
      return Errc::kDenied;
    case StatusCode::kGuardCheckError:
    case StatusCode::kApplicationTagCheckError:
    case StatusCode::kReferenceTagCheckError:
    case StatusCode::kStorageTagCheckError:
      return Errc::kCorrupt;
    default:
      return Errc::kIo;
  }
}

}  // namespace

Error error_of(Status status, StatusContext context) {
  const StatusCode code = status.code();
  const auto detail = static_cast<int32_t>(code);
  switch (status.type()) {
    case StatusType::kGeneric:
      return {generic_code(code), "NVMe status of the target", detail};
    case StatusType::kCommandSpecific:
      return {specific_code(code, context), "NVMe status of the target", detail};
    case StatusType::kMedia:
      return {media_code(code), "NVMe media status of the target", detail};
    case StatusType::kPath:
      return {Errc::kUnreachable, "NVMe path status of the target", detail};
    case StatusType::kVendor:
      break;
  }
  return {Errc::kIo, "unknown NVMe status of the target", detail};
}

bool is_path_status(Status status) {
  if (status.do_not_retry() || status.type() != StatusType::kPath) return false;
  return status.code() != StatusCode::kAbortedByHost;
}

bool is_transient_status(Status status) {
  if (status.do_not_retry()) return false;
  switch (status.code()) {
    case StatusCode::kInternalError:
    case StatusCode::kDataTransferError:
    case StatusCode::kTransientTransportError:
    case StatusCode::kCommandInterrupted:
    case StatusCode::kAbortedPowerLoss:
    case StatusCode::kAbortRequested:
    case StatusCode::kAbortedQueueDeletion:
    case StatusCode::kNamespaceNotReady:
    case StatusCode::kMediaNotReady:
    case StatusCode::kFormatInProgress:
    case StatusCode::kSanitizeInProgress:
    case StatusCode::kAbortedByHost:
      return true;
    default:
      return false;
  }
}

}  // namespace cairn::fabric
