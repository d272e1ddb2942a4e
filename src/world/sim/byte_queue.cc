// SPDX-License-Identifier: Apache-2.0
#include "world/sim/byte_queue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/bytes.h"
#include "base/check.h"

namespace cairn::sim {

ByteBlock& BlockPool::take() {
  ++in_use_;
  if (free_ == nullptr) {
    // Not value-initialised: 16 KiB of zeroes nobody asked for.
    all_.push_back(std::unique_ptr<ByteBlock>(new ByteBlock));
    return *all_.back();
  }
  ByteBlock& block = *free_;
  free_ = block.next;
  block.next = nullptr;
  return block;
}

void BlockPool::give(ByteBlock& block) {
  --in_use_;
  block.next = free_;
  free_ = &block;
}

ByteQueue::~ByteQueue() {
  while (first_ != nullptr) {
    ByteBlock& block = *first_;
    first_ = block.next;
    block.is_in_queue = false;
    CHECK(block.pins == 0, "chunks are given back before their stream goes");
    pool_.give(block);
  }
}

// Positions map to offsets in blocks by themselves: a block holds one aligned run of kSize.
void ByteQueue::append(Bytes bytes) {
  while (!bytes.empty()) {
    const size_t offset = offset_of(end_);
    if (last_ == nullptr || offset == 0) {
      ByteBlock& block = pool_.take();
      block.is_in_queue = true;
      (last_ == nullptr ? first_ : last_->next) = &block;
      last_ = &block;
    }
    const size_t count = std::min(bytes.size(), ByteBlock::kSize - offset);
    std::memcpy(last_->data + offset, bytes.data(), count);
    bytes = bytes.subspan(count);
    end_ += count;
  }
}

void ByteQueue::drop_first_if_done() {
  if (offset_of(begin_) != 0) return;
  ByteBlock& block = *first_;
  first_ = block.next;
  if (first_ == nullptr) last_ = nullptr;
  block.next = nullptr;
  block.is_in_queue = false;
  if (block.pins == 0) pool_.give(block);
}

void ByteQueue::take(MutableBytes into) {
  CHECK(into.size() <= end_ - begin_);
  while (!into.empty()) {
    const size_t offset = offset_of(begin_);
    const size_t count = std::min(into.size(), ByteBlock::kSize - offset);
    std::memcpy(into.data(), first_->data + offset, count);
    into = into.subspan(count);
    begin_ += count;
    drop_first_if_done();
  }
}

ByteQueue::Run ByteQueue::take_pinned(size_t limit) {
  CHECK(limit > 0 && limit <= end_ - begin_);
  ByteBlock& block = *first_;
  const size_t offset = offset_of(begin_);
  const size_t count = std::min(limit, ByteBlock::kSize - offset);
  ++block.pins;
  begin_ += count;
  drop_first_if_done();
  return {Bytes(block.data + offset, count), &block};
}

void ByteQueue::unpin(ByteBlock& block) {
  CHECK(block.pins > 0);
  --block.pins;
  if (block.pins == 0 && !block.is_in_queue) pool_.give(block);
}

void ByteQueue::flip(uint64_t position, uint32_t bit) {
  CHECK(position >= begin_ && position < end_);
  ByteBlock* block = first_;
  uint64_t skipped = position / ByteBlock::kSize - begin_ / ByteBlock::kSize;
  for (; skipped > 0; --skipped) block = block->next;
  block->data[offset_of(position)] ^= std::byte{static_cast<uint8_t>(1U << bit)};
}

}  // namespace cairn::sim
