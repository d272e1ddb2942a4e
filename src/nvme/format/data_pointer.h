// SPDX-License-Identifier: Apache-2.0
// Where a command's data are on NVMe/TCP: in its capsule, or to be moved by data PDUs
// (NVMe/TCP 1.0, 3.3.2). SglDescriptor::in_capsule() and ::transport() write the descriptors read
// here.
#pragma once

#include <cstdint>
#include <expected>

#include "nvme/format/command_format.h"
#include "nvme/format/status_format.h"

namespace cairn::nvme {

struct DataPointer {
  bool in_capsule = false;  // else in the command data buffer: R2T and H2CData, or C2HData
  uint32_t offset = 0;      // of the first byte in the capsule's data
  uint32_t length = 0;
};

// What `sqe` says of its data, with `in_capsule_length` bytes in its capsule; of commands that move
// none by their opcode, that there are none. Refusals carry DNR:
//   kInvalidField              PSDT is not kSgl, which Fabrics demands
//   kSglDescriptorTypeInvalid  neither of the two descriptors of NVMe/TCP
//   kSglOffsetInvalid          an offset outside the capsule's data
//   kDataSglLengthInvalid      more or fewer bytes than the capsule holds, or no whole dwords
std::expected<DataPointer, Status> decode_data_pointer(const Sqe& sqe, uint32_t in_capsule_length);

}  // namespace cairn::nvme
