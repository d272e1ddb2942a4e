// SPDX-License-Identifier: Apache-2.0
// Where in a host's memory the data of a command are: PRPs and SGLs turned into a list of pieces
// (NVMe Base 2.0, 4.1.1 and 4.1.2).
//
// Everything read here is written by the host, which may change it meanwhile: each entry is read
// once, each list ends, and what a piece names is anything until whoever owns the memory says
// otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "nvme/format/command_format.h"
#include "nvme/format/status_format.h"

namespace cairn::nvme {

// How lists that lie in the host's memory are read.
class HostMemory {
 public:
  // False: not all of it is the host's memory, and `into` is undefined.
  virtual bool read(uint64_t address, MutableBytes into) const = 0;

 protected:
  ~HostMemory() = default;
};

struct HostPiece {
  uint64_t address = 0;
  uint64_t length = 0;
  friend constexpr bool operator==(const HostPiece&, const HostPiece&) = default;
};

// Descriptors of one SGL, segments included. Data of PRPs are bounded by their length.
inline constexpr size_t kSglDescriptorsMax = 1024;

struct DataShape {
  size_t bytes = 0;            // what the command moves, above 0
  uint32_t page_size = 4096;   // CC.MPS
  bool may_be_longer = false;  // an SGL may describe more, and its rest is not used
};

// Puts the pieces of `shape.bytes` into `pieces`, in order, neighbours joined, none empty; keeps
// the vector's memory. On a refusal `pieces` is undefined. Refusals carry DNR:
//   kInvalidField              PSDT is reserved
//   kPrpOffsetInvalid          a PRP that is not aligned as its place demands
//   kDataTransferError         a list that is not in the host's memory
//   kInvalidSglSegment         a segment of no whole descriptors, or that does not end as it must
//   kInvalidSglCount           more than kSglDescriptorsMax
//   kDataSglLengthInvalid      data blocks of more or fewer bytes
//   kSglDescriptorTypeInvalid  neither a data block by address nor a segment
Status find_data(const Sqe& sqe, const DataShape& shape, const HostMemory& memory,
                 std::vector<HostPiece>& pieces);

}  // namespace cairn::nvme
