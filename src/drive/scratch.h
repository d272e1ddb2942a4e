// SPDX-License-Identifier: Apache-2.0
// Scratch: memory of one request for as long as it runs. It comes from the core's buffers and, when
// those are all out, from the heap: layers of a stack that wait for each other's buffers would wait
// for ever, and nobody above a drive expects a request to fail because others are under way.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "env/env.h"

namespace cairn::drive {

// Aligned for direct access to disks.
class Scratch {
 public:
  // kLimit: the machine has no memory. kInvalid: a size of 0.
  static Result<Scratch> make(env::Env& env, size_t size) {
    if (size == 0) return fail(Errc::kInvalid, "memory of no bytes");
    Scratch scratch;
    if (Result<Buffer> buffer = env.buffers().allocate(size)) {
      scratch.buffer_ = std::move(*buffer);
      scratch.bytes_ = scratch.buffer_.bytes();
      return scratch;
    }
    const size_t room = align_up(size, BufferPool::kAlignment);
    scratch.heap_.reset(static_cast<std::byte*>(std::aligned_alloc(BufferPool::kAlignment, room)));
    if (scratch.heap_ == nullptr) return fail(Errc::kLimit, "the machine is out of memory");
    scratch.bytes_ = {scratch.heap_.get(), size};
    return scratch;
  }
  Scratch() = default;
  Scratch(Scratch&& other) noexcept
      : buffer_(std::move(other.buffer_)),
        heap_(std::move(other.heap_)),
        bytes_(std::exchange(other.bytes_, {})) {}
  Scratch& operator=(Scratch&& other) noexcept {
    buffer_ = std::move(other.buffer_);
    heap_ = std::move(other.heap_);
    bytes_ = std::exchange(other.bytes_, {});
    return *this;
  }

  std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  MutableBytes bytes() const { return bytes_; }
  MutableBytes first(size_t count) const { return bytes_.first(count); }
  MutableBytes subspan(size_t offset, size_t count) const { return bytes_.subspan(offset, count); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  Buffer buffer_;
  std::unique_ptr<std::byte, Free> heap_;
  MutableBytes bytes_;
};

}  // namespace cairn::drive
