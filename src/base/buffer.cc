// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include <cstdlib>

#include "base/check.h"

namespace cairn {

void Buffer::release() {
  if (size_class_ == kOfHeap) {
    pool_->heap_in_use_ -= align_up(size_, BufferPool::kAlignment);
    return std::free(data_);
  }
  auto* node = reinterpret_cast<BufferPool::FreeNode*>(data_);
  BufferPool::SizeClass& size_class = pool_->classes_[size_class_];
  node->next = size_class.free;
  size_class.free = node;
  --pool_->in_use_;
}

void BufferPool::FreeDeleter::operator()(std::byte* arena) const { std::free(arena); }

BufferPool::BufferPool(const BufferPoolOptions& options) {
  CHECK(!options.classes.empty());
  size_t previous = 0;
  for (const auto& wanted : options.classes) {
    CHECK(wanted.size > previous && is_aligned(wanted.size, kAlignment));
    previous = wanted.size;
    arena_size_ += size_t{wanted.size} * wanted.count;
  }
  arena_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, arena_size_)));
  CHECK(arena_ != nullptr, "address space for the buffer arena");
  std::byte* next = arena_.get();
  for (const auto& wanted : options.classes) {
    classes_.push_back({.size = wanted.size,
                        .free = nullptr,
                        .fresh = next,
                        .fresh_end = next + size_t{wanted.size} * wanted.count});
    next = classes_.back().fresh_end;
  }
}

BufferPool::~BufferPool() {
  CHECK(in_use_ == 0 && heap_in_use_ == 0, "every buffer returns before its pool goes");
}

Result<Buffer> BufferPool::allocate(size_t size) {
  if (size == 0 || size > size_max()) return fail(Errc::kInvalid, "buffer size");
  for (uint32_t i = 0; i < classes_.size(); ++i) {
    SizeClass& size_class = classes_[i];
    if (size_class.size < size) continue;
    std::byte* data = nullptr;
    if (size_class.free != nullptr) {
      data = reinterpret_cast<std::byte*>(size_class.free);
      size_class.free = size_class.free->next;
    } else if (size_class.fresh != size_class.fresh_end) {
      data = size_class.fresh;
      size_class.fresh += size_class.size;
    } else {
      continue;
    }
    ++in_use_;
    return Buffer(this, data, size, i);
  }
  return fail(Errc::kLimit, "buffer pool");
}

Result<Buffer> BufferPool::allocate_or_heap(size_t size) {
  if (size == 0 || size > kHeapMax) return fail(Errc::kInvalid, "buffer size");
  if (size <= size_max()) {
    if (Result<Buffer> buffer = allocate(size)) return buffer;
  }
  const size_t room = align_up(size, kAlignment);
  if (room > kHeapMax - heap_in_use_) {
    return fail(Errc::kLimit, "the requests of this core have 1 GiB of memory beyond its buffers");
  }
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, room));
  if (data == nullptr) return fail(Errc::kLimit, "the machine is out of memory");
  heap_in_use_ += room;
  return Buffer(this, data, size, Buffer::kOfHeap);
}

}  // namespace cairn
