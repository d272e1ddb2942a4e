// SPDX-License-Identifier: Apache-2.0
// BufferQueue: a core's buffers with a line of those who wait when all are out.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "base/buffer.h"
#include "base/list.h"
#include "env/env.h"
#include "task/operation.h"
#include "task/timer.h"

namespace cairn::fabric {

// First come, first served. Whoever releases buffers tells it with released(); as others may use
// the same pool without telling, the line is also looked at every millisecond while it is not
// empty.
class BufferQueue {
 public:
  // A line for `pool`, which outlives it.
  BufferQueue(env::Env& env, BufferPool& pool)
      : env_(env), pool_(pool), retry_(&BufferQueue::on_time) {
    retry_.queue = this;
  }
  BufferQueue(const BufferQueue&) = delete;
  BufferQueue& operator=(const BufferQueue&) = delete;

  class Allocate final : public task::Operation<Buffer>, public ListHook<BufferQueue> {
   public:
    Allocate(BufferQueue& queue, size_t size, task::CancelToken token)
        : Operation(token), queue_(queue), size_(size) {}

   private:
    friend class BufferQueue;
    void start() override { queue_.start(*this); }
    void cancel() override {
      ListHook<BufferQueue>::unlink();
      complete(cancelled());
    }
    BufferQueue& queue_;
    size_t size_;
  };

  // Waits for a buffer. kInvalid: larger than any.
  Allocate allocate(size_t size, task::CancelToken token) { return {*this, size, token}; }
  // A buffer if one is free and nobody waits.
  std::optional<Buffer> try_allocate(size_t size) {
    if (!waiting_.empty()) return std::nullopt;
    Result<Buffer> buffer = pool_.allocate(size);
    if (!buffer) return std::nullopt;
    return std::move(*buffer);
  }
  void released() {
    if (!waiting_.empty()) serve();
  }

 private:
  struct RetryTimer : task::Timer {
    using Timer::Timer;
    BufferQueue* queue = nullptr;
  };
  static void on_time(task::Timer& timer) { static_cast<RetryTimer&>(timer).queue->serve(); }
  void start(Allocate& op) {
    if (waiting_.empty()) {
      Result<Buffer> buffer = pool_.allocate(op.size_);
      if (buffer || buffer.error() != Errc::kLimit) return op.complete(std::move(buffer));
    }
    waiting_.push_back(op);
    if (!retry_.is_armed()) env_.arm(retry_, env_.now() + 1_ms);
  }
  void serve() {
    while (Allocate* first = waiting_.front()) {
      Result<Buffer> buffer = pool_.allocate(first->size_);
      if (!buffer && buffer.error() == Errc::kLimit) break;
      waiting_.pop_front();
      first->complete(std::move(buffer));
    }
    if (!waiting_.empty() && !retry_.is_armed()) env_.arm(retry_, env_.now() + 1_ms);
  }

  env::Env& env_;
  BufferPool& pool_;
  List<Allocate, BufferQueue> waiting_;
  RetryTimer retry_;
};

}  // namespace cairn::fabric
