// SPDX-License-Identifier: Apache-2.0
// ByteQueue: bytes between a sender and a receiver, in pooled blocks that never move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"

namespace cairn::sim {

struct ByteBlock {
  static constexpr size_t kSize = (16 << 10) - 32;
  ByteBlock* next = nullptr;
  uint32_t pins = 0;         // readers that still look at it
  bool is_in_queue = false;  // else it is freed with the last pin
  std::byte data[kSize];
};

// Blocks for all queues of a world; what is given back is used again.
class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  ByteBlock& take();
  void give(ByteBlock& block);
  size_t in_use() const { return in_use_; }

 private:
  std::vector<std::unique_ptr<ByteBlock>> all_;
  ByteBlock* free_ = nullptr;
  size_t in_use_ = 0;
};

// First in, first out. Bytes have positions, counted from the first that ever was in the queue.
class ByteQueue {
 public:
  explicit ByteQueue(BlockPool& pool) : pool_(pool) {}
  ~ByteQueue();
  ByteQueue(const ByteQueue&) = delete;
  ByteQueue& operator=(const ByteQueue&) = delete;

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }

  void append(Bytes bytes);
  // Takes the first into.size() bytes out; they must be there.
  void take(MutableBytes into);

  // Takes out, without copying, the first bytes: as many as lie together and at most `limit`. They
  // stay readable until unpin() of the block.
  struct Run {
    Bytes bytes;
    ByteBlock* block = nullptr;
  };
  Run take_pinned(size_t limit);
  void unpin(ByteBlock& block);

  // Inverts one bit of the byte at a position that is in the queue.
  void flip(uint64_t position, uint32_t bit);

 private:
  static size_t offset_of(uint64_t position) { return position % ByteBlock::kSize; }
  // Frees the first block when all of it was taken.
  void drop_first_if_done();

  BlockPool& pool_;
  ByteBlock* first_ = nullptr;
  ByteBlock* last_ = nullptr;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace cairn::sim
