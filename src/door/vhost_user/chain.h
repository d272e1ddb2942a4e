// SPDX-License-Identifier: Apache-2.0
// Chain: one request as it stands in a virtqueue, and how descriptors that a guest wrote are read.
//
// Nothing in a descriptor can be trusted: every index is checked, every descriptor is read once,
// and a chain has at most kSegmentsMax of them, so that a loop ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/common/guest_memory.h"

namespace cairn::door::vhost_user {

// Of one request, wherever its descriptors stand.
inline constexpr size_t kSegmentsMax = 1024;

struct Segment {
  uint64_t address = 0;  // of the guest
  uint32_t length = 0;
  bool is_writable = false;  // by the device
};

struct Chain {
  uint16_t id = 0;                // how the driver knows it
  uint16_t entries = 0;           // of the descriptor ring it takes; 1 in a split virtqueue
  uint16_t note = 0;              // packed: which note of those in flight is its
  std::vector<Segment> segments;  // in order
};

// The chain of a split virtqueue that begins at `head` of its table. kInvalid: it leaves the table,
// has too many descriptors, or an indirect table is not in guest memory.
Result<void> read_split_chain(Bytes table, uint16_t head, bool may_be_indirect, GuestMemory& memory,
                              Chain& chain);

// Adds what an indirect table of a packed virtqueue holds. Errors as above.
Result<void> add_packed_table(uint64_t address, uint32_t length, GuestMemory& memory, Chain& chain);

}  // namespace cairn::door::vhost_user
