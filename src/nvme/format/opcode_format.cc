// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/opcode_format.h"

#include <string_view>

namespace cairn::nvme {

std::string_view name(AdminOpcode opcode) {
  switch (opcode) {
    case AdminOpcode::kDeleteSubmissionQueue:
      return "delete submission queue";
    case AdminOpcode::kCreateSubmissionQueue:
      return "create submission queue";
    case AdminOpcode::kGetLogPage:
      return "get log page";
    case AdminOpcode::kDeleteCompletionQueue:
      return "delete completion queue";
    case AdminOpcode::kCreateCompletionQueue:
      return "create completion queue";
    case AdminOpcode::kIdentify:
      return "identify";
    case AdminOpcode::kAbort:
      return "abort";
    case AdminOpcode::kSetFeatures:
      return "set features";
    case AdminOpcode::kGetFeatures:
      return "get features";
    case AdminOpcode::kAsynchronousEventRequest:
      return "asynchronous event request";
    case AdminOpcode::kNamespaceManagement:
      return "namespace management";
    case AdminOpcode::kFirmwareCommit:
      return "firmware commit";
    case AdminOpcode::kFirmwareDownload:
      return "firmware download";
    case AdminOpcode::kDeviceSelfTest:
      return "device self-test";
    case AdminOpcode::kNamespaceAttachment:
      return "namespace attachment";
    case AdminOpcode::kKeepAlive:
      return "keep alive";
    case AdminOpcode::kDirectiveSend:
      return "directive send";
    case AdminOpcode::kDirectiveReceive:
      return "directive receive";
    case AdminOpcode::kVirtualizationManagement:
      return "virtualization management";
    case AdminOpcode::kManagementSend:
      return "management send";
    case AdminOpcode::kManagementReceive:
      return "management receive";
    case AdminOpcode::kCapacityManagement:
      return "capacity management";
    case AdminOpcode::kLockdown:
      return "lockdown";
    case AdminOpcode::kDoorbellBufferConfig:
      return "doorbell buffer config";
    case AdminOpcode::kFabrics:
      return "fabrics";
    case AdminOpcode::kFormatNvm:
      return "format";
    case AdminOpcode::kSecuritySend:
      return "security send";
    case AdminOpcode::kSecurityReceive:
      return "security receive";
    case AdminOpcode::kSanitize:
      return "sanitize";
    case AdminOpcode::kGetLbaStatus:
      return "get LBA status";
    case AdminOpcode::kVendorSend:
      return "vendor send";
  }
  return "unknown";
}

std::string_view name(IoOpcode opcode) {
  switch (opcode) {
    case IoOpcode::kFlush:
      return "flush";
    case IoOpcode::kWrite:
      return "write";
    case IoOpcode::kRead:
      return "read";
    case IoOpcode::kWriteUncorrectable:
      return "write uncorrectable";
    case IoOpcode::kCompare:
      return "compare";
    case IoOpcode::kWriteZeroes:
      return "write zeroes";
    case IoOpcode::kDatasetManagement:
      return "dataset management";
    case IoOpcode::kVerify:
      return "verify";
    case IoOpcode::kReservationRegister:
      return "reservation register";
    case IoOpcode::kReservationReport:
      return "reservation report";
    case IoOpcode::kReservationAcquire:
      return "reservation acquire";
    case IoOpcode::kReservationRelease:
      return "reservation release";
    case IoOpcode::kCopy:
      return "copy";
    case IoOpcode::kFabrics:
      return "fabrics";
    case IoOpcode::kReplicatedWrite:
      return "replicated write";
  }
  return "unknown";
}

std::string_view name(FabricsType type) {
  switch (type) {
    case FabricsType::kPropertySet:
      return "property set";
    case FabricsType::kConnect:
      return "connect";
    case FabricsType::kPropertyGet:
      return "property get";
    case FabricsType::kAuthenticationSend:
      return "authentication send";
    case FabricsType::kAuthenticationReceive:
      return "authentication receive";
    case FabricsType::kDisconnect:
      return "disconnect";
  }
  return "unknown";
}

}  // namespace cairn::nvme
