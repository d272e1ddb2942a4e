// SPDX-License-Identifier: Apache-2.0
// DmaTable: which of its memory a client has listed. What came with a descriptor is guest memory,
// which the device reaches; what came without is known only by name: it can be taken out again, and
// nothing else may be listed over it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "door/common/guest_memory.h"
#include "door/vfio_user/device.h"
#include "door/vfio_user/wire_format.h"
#include "env/sharing.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

// On one core.
class DmaTable {
 public:
  DmaTable(env::Sharing& sharing, door::GuestMemory& memory) : sharing_(sharing), memory_(memory) {}

  // `descriptor` is null where the client keeps the memory to itself.
  // kExists: it lies over another; kLimit; kInvalid: empty, beyond the last address, of unknown
  // flags, or what the descriptor has is no such memory; kDenied: it may not be written.
  Result<void> map(const DmaMap& request, const env::Descriptor* descriptor);

  // Takes out what lies wholly in the range, or everything. Done when `device` does not use it any
  // more. kNotFound, kInvalid: a part of a region.
  task::Task<Result<void>> unmap(uint64_t address, uint64_t size, Device& device);
  task::Task<void> unmap_all(Device& device);

 private:
  struct Range {
    uint64_t address;
    uint64_t last;
  };
  bool is_over_unshared(const Range& range) const;
  bool is_over_shared(const Range& range) const;

  env::Sharing& sharing_;
  door::GuestMemory& memory_;
  std::vector<Range> unshared_;
};

}  // namespace cairn::door::vfio_user
