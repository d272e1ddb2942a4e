// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/chain.h"

#include "door/vhost_user/virtio_format.h"

namespace cairn::door::vhost_user {

namespace {

Result<void> add(Chain& chain, uint64_t address, uint32_t length, uint16_t flags) {
  if (chain.segments.size() == kSegmentsMax) {
    return fail(Errc::kInvalid, "a chain of too many descriptors, or a loop");
  }
  chain.segments.push_back(
      {.address = address, .length = length, .is_writable = (flags & kDescriptorWrite) != 0});
  return {};
}

// Where an indirect table lies.
Result<Bytes> find_table(uint64_t address, uint32_t length, GuestMemory& memory) {
  if (length == 0 || !is_aligned(length, sizeof(SplitDescriptor))) {
    return fail(Errc::kInvalid, "an indirect table of no whole descriptors");
  }
  const GuestMemory::Piece piece = memory.find(address, length, false);
  if (!piece.is_valid()) return fail(Errc::kInvalid, "an indirect table outside guest memory");
  return piece.bytes;
}

// Follows a chain through one table; what is indirect is left in `last`.
Result<void> follow(Bytes table, uint16_t head, Chain& chain, SplitDescriptor& last) {
  const size_t count = table.size() / sizeof(SplitDescriptor);
  for (size_t index = head, steps = 0;; ++steps) {
    if (index >= count) return fail(Errc::kInvalid, "a descriptor beyond its table");
    // A table of no more than kSegmentsMax is left by a chain without a loop before that.
    if (steps == kSegmentsMax) return fail(Errc::kInvalid, "a loop of descriptors");
    last = load<SplitDescriptor>(table.subspan(index * sizeof(SplitDescriptor)));
    if ((last.flags & kDescriptorIndirect) != 0) return {};
    if (Result<void> added = add(chain, last.address, last.length, last.flags); !added) {
      return added;
    }
    if ((last.flags & kDescriptorNext) == 0) return {};
    index = last.next;
  }
}

}  // namespace

Result<void> read_split_chain(Bytes table, uint16_t head, bool may_be_indirect, GuestMemory& memory,
                              Chain& chain) {
  chain.id = head;
  chain.entries = 1;
  chain.segments.clear();
  SplitDescriptor last{};
  if (Result<void> read = follow(table, head, chain, last); !read) return read;
  if ((last.flags & kDescriptorIndirect) == 0) return {};
  if (!may_be_indirect || (last.flags & kDescriptorNext) != 0) {
    return fail(Errc::kInvalid, "an indirect descriptor where none may be");
  }
  const Result<Bytes> indirect = find_table(last.address, last.length, memory);
  if (!indirect) return fail(indirect.error());
  if (Result<void> read = follow(*indirect, 0, chain, last); !read) return read;
  if ((last.flags & kDescriptorIndirect) != 0) {
    return fail(Errc::kInvalid, "an indirect table inside another");
  }
  return {};
}

Result<void> add_packed_table(uint64_t address, uint32_t length, GuestMemory& memory,
                              Chain& chain) {
  const Result<Bytes> table = find_table(address, length, memory);
  if (!table) return fail(table.error());
  const size_t count = table->size() / sizeof(PackedDescriptor);
  if (count > kSegmentsMax) return fail(Errc::kInvalid, "an indirect table of too many");
  for (size_t i = 0; i < count; ++i) {
    const auto descriptor = load<PackedDescriptor>(table->subspan(i * sizeof(PackedDescriptor)));
    if ((descriptor.flags & kDescriptorIndirect) != 0) {
      return fail(Errc::kInvalid, "an indirect table inside another");
    }
    const Result<void> added = add(chain, descriptor.address, descriptor.length, descriptor.flags);
    if (!added) return added;
  }
  return {};
}

}  // namespace cairn::door::vhost_user
