// SPDX-License-Identifier: Apache-2.0
// Memory: one large region that reads as zeroes until written and can be given back in part.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::env {

// What a region consists of where there is a choice. Large pages miss the TLB less under random
// access; the first touch of one takes as long as clearing it, which can be milliseconds.
enum class MemoryPages : uint8_t { kLarge, kSmall };

// Page-aligned, fixed in place. The region itself belongs to no core: who shares it between cores
// sees to it that a byte is not written by two at once. Freed with the object.
class Memory {
 public:
  virtual ~Memory() = default;

  MutableBytes bytes() const { return bytes_; }
  // The range reads as zeroes again; whole pages in it go back to the system where it can.
  virtual void discard(uint64_t offset, uint64_t length) = 0;

 protected:
  MutableBytes bytes_;
};

// Memory from the heap, for worlds without better. kLimit: there is not that much.
Result<std::unique_ptr<Memory>> make_heap_memory(uint64_t size);

}  // namespace cairn::env
