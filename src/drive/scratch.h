// SPDX-License-Identifier: Apache-2.0
// Scratch: memory of one request for as long as it runs. It comes from the core's buffers and, when
// those are all out, from the heap: layers of a stack that wait for each other's buffers would wait
// for ever, and nobody above a drive expects a request to fail because others are under way. What a
// core takes from the heap so has a bound (BufferPool::kHeapMax).
#pragma once

#include <cstddef>
#include <utility>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "env/env.h"

namespace cairn::drive {

// Aligned for direct access to disks.
class Scratch {
 public:
  // kLimit: the bound is reached, or the machine has no memory. kInvalid: a size of 0.
  static Result<Scratch> make(env::Env& env, size_t size) {
    if (size == 0) return fail(Errc::kInvalid, "memory of no bytes");
    Result<Buffer> buffer = env.buffers().allocate_or_heap(size);
    if (!buffer) return fail(buffer.error());
    Scratch scratch;
    scratch.buffer_ = std::move(*buffer);
    return scratch;
  }

  std::byte* data() const { return buffer_.data(); }
  size_t size() const { return buffer_.size(); }
  bool empty() const { return buffer_.empty(); }
  MutableBytes bytes() const { return buffer_.bytes(); }
  MutableBytes first(size_t count) const { return buffer_.first(count); }
  MutableBytes subspan(size_t offset, size_t count) const { return buffer_.subspan(offset, count); }

 private:
  Buffer buffer_;
};

}  // namespace cairn::drive
