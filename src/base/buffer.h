// SPDX-License-Identifier: Apache-2.0
// Buffers for I/O: move-only handles into one core's pool, aligned for direct disk access.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn {

class BufferPool;

// Owns `size()` bytes until destroyed, then gives them back. Empty when default-made or moved
// from. Must be destroyed on the core that owns the pool, and before the pool.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (pool_ != nullptr) release();
  }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  MutableBytes bytes() const { return {data_, size_}; }
  MutableBytes first(size_t count) const { return bytes().first(count); }
  MutableBytes subspan(size_t offset, size_t count) const { return bytes().subspan(offset, count); }

 private:
  friend class BufferPool;
  static constexpr uint32_t kOfHeap = UINT32_MAX;  // in place of a size class
  Buffer(BufferPool* pool, std::byte* data, size_t size, uint32_t size_class)
      : pool_(pool), data_(data), size_(static_cast<uint32_t>(size)), size_class_(size_class) {}
  void swap(Buffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(size_class_, other.size_class_);
  }
  void release();

  BufferPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  uint32_t size_ = 0;
  uint32_t size_class_ = 0;
};

struct BufferPoolOptions {
  struct Class {
    uint32_t size = 0;   // a multiple of BufferPool::kAlignment
    uint32_t count = 0;  // the named maximum: this many can be out at once
  };
  // Ascending by size. The default is 60 MiB of address space; a page costs memory once touched.
  std::vector<Class> classes = {
      {4096, 4096}, {16384, 512}, {65536, 192}, {262144, 32}, {1048576, 16}};
};

// A core's buffers: one contiguous arena cut into size classes when the core starts.
// All calls on the owning core. Allocation is a pop, release a push; the heap is not touched.
class BufferPool {
 public:
  static constexpr size_t kAlignment = 4096;
  static constexpr size_t kHeapMax = size_t{1} << 30;  // bytes

  explicit BufferPool(const BufferPoolOptions& options = {});
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A buffer of exactly `size` bytes (its storage is the smallest class that holds it and has one
  // free). Contents are whatever the last user left. kInvalid: larger than the largest class, or
  // zero; kLimit: all that would fit are out.
  Result<Buffer> allocate(size_t size);

  // The same, of any size up to kHeapMax, and from the heap when the arena has none: for who must
  // not wait for others' buffers. kLimit: as much as kHeapMax is out of the heap, or the machine
  // has no memory.
  Result<Buffer> allocate_or_heap(size_t size);

  size_t in_use() const { return in_use_; }            // of the arena
  size_t heap_in_use() const { return heap_in_use_; }  // bytes
  size_t size_max() const { return classes_.back().size; }
  // The whole arena, for registration with a kernel.
  Bytes arena() const { return {arena_.get(), arena_size_}; }

 private:
  friend class Buffer;
  struct FreeNode {
    FreeNode* next;
  };
  struct SizeClass {
    size_t size;
    FreeNode* free;    // returned buffers, linked through their first bytes
    std::byte* fresh;  // never handed out yet, so that untouched pages stay unmapped
    std::byte* fresh_end;
  };
  struct FreeDeleter {
    void operator()(std::byte* arena) const;
  };

  std::unique_ptr<std::byte, FreeDeleter> arena_;
  size_t arena_size_ = 0;
  std::vector<SizeClass> classes_;
  size_t in_use_ = 0;
  size_t heap_in_use_ = 0;
};

}  // namespace cairn
