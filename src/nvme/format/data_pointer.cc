// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/data_pointer.h"

#include <cstdint>
#include <expected>

#include "nvme/format/command_format.h"
#include "nvme/format/opcode_format.h"
#include "nvme/format/status_format.h"

namespace cairn::nvme {

static std::unexpected<Status> refuse(StatusCode code) {
  return std::unexpected(final_status(code));
}

std::expected<DataPointer, Status> decode_data_pointer(const Sqe& sqe, uint32_t in_capsule_length) {
  if (sqe.psdt() != Psdt::kSgl) return refuse(StatusCode::kInvalidField);
  if (sqe.transfer() == Transfer::kNone) {
    // Some hosts leave the descriptor of a command without data as zeroes.
    if (in_capsule_length != 0) return refuse(StatusCode::kDataSglLengthInvalid);
    return DataPointer{};
  }
  const SglDescriptor& sgl = sqe.sgl1;
  switch (sgl.id) {
    case SglId::kDataBlockOffset:
      if (sgl.address > in_capsule_length) return refuse(StatusCode::kSglOffsetInvalid);
      if (sgl.length != in_capsule_length - sgl.address) {
        return refuse(StatusCode::kDataSglLengthInvalid);
      }
      return DataPointer{
          .in_capsule = true, .offset = static_cast<uint32_t>(sgl.address), .length = sgl.length};
    case SglId::kTransportDataBlock:
      // Data PDUs move dwords.
      if (in_capsule_length != 0 || sgl.length % 4 != 0) {
        return refuse(StatusCode::kDataSglLengthInvalid);
      }
      return DataPointer{.length = sgl.length};
    default:
      return refuse(StatusCode::kSglDescriptorTypeInvalid);
  }
}

}  // namespace cairn::nvme
