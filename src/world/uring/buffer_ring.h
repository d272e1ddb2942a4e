// SPDX-License-Identifier: Apache-2.0
// BufferRing: memory the kernel picks from when data arrives, shared by all streams of a core.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::uring {

using BufferId = uint16_t;

class BufferRing {
 public:
  static constexpr uint16_t kGroup = 0;
  static constexpr uint32_t kCount = 256;
  static constexpr uint32_t kSize = 65536;
  static constexpr uint32_t kStep = 16;

  // kUnsupported: the kernel has no buffer rings (before 5.19).
  static Result<std::unique_ptr<BufferRing>> make(io_uring& ring);
  ~BufferRing();
  BufferRing(const BufferRing&) = delete;
  BufferRing& operator=(const BufferRing&) = delete;

  Bytes bytes(BufferId id, uint32_t length) const { return {memory_.get() + offset(id), length}; }
  // Back to the kernel.
  void give(BufferId id);
  // The kernel uses its buffers in turn, so few of them stay warm in the cache and many do not.
  // It gets some at first, and more whenever it has run out. False: it has them all.
  bool give_more();

  // Room for each buffer's place in its stream's queue, so that queues need no memory of their own.
  struct Link {
    uint32_t length = 0;
    BufferId next = 0;
  };
  Link& link(BufferId id) { return links_[id]; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  explicit BufferRing(io_uring& ring) : ring_(ring), links_(kCount) {}
  static size_t offset(BufferId id) { return size_t{id} * kSize; }

  io_uring& ring_;
  io_uring_buf_ring* shared_ = nullptr;  // what the kernel sees
  std::unique_ptr<std::byte, Free> shared_memory_;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<Link> links_;
  uint32_t given_ = 0;  // how many are in circulation
};

}  // namespace cairn::uring
