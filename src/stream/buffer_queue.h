// SPDX-License-Identifier: Apache-2.0
// BufferQueue: a core's buffers, with a FIFO of waiters when all are in use.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/buffer.h"
#include "base/check.h"
#include "base/list.h"
#include "env/env.h"
#include "task/operation.h"
#include "task/timer.h"

namespace cairn::stream {

// Two at once, for commands that belong together.
using BufferPair = std::array<Buffer, 2>;

// First come, first served. Code that releases buffers calls released(); because other users of the
// pool may not, the queue is also checked every millisecond while it is not empty.
//
// No wait is unbounded: every call that waits has a timeout. And a caller must not wait for a
// buffer while it holds another one, or waiters could hold all buffers: a caller that needs two
// asks for both at once.
class BufferQueue {
 public:
  // A line for `pool`, which outlives it.
  BufferQueue(env::Env& env, BufferPool& pool)
      : env_(env), pool_(pool), retry_(&BufferQueue::on_time) {
    retry_.queue = this;
  }
  BufferQueue(const BufferQueue&) = delete;
  BufferQueue& operator=(const BufferQueue&) = delete;

  // Somebody in the line.
  class Waiter : public ListHook<BufferQueue> {
   protected:
    explicit Waiter(Duration timeout) : timeout_(timeout) {}
    ~Waiter() = default;

   private:
    friend class BufferQueue;
    // Done, one way or the other; false: it has to wait.
    virtual bool try_take(BufferPool& pool) = 0;
    virtual void give_up() = 0;
    Duration timeout_;
    Time until_;  // once it stands in the line
  };

  template <class Memory>
  class Wait final : public task::Operation<Memory>, public Waiter {
   public:
    Wait(BufferQueue& queue, std::array<size_t, 2> sizes, Duration timeout, task::CancelToken token)
        : task::Operation<Memory>(token), Waiter(timeout), queue_(queue), sizes_(sizes) {}

   private:
    void start() override { queue_.start(*this); }
    void cancel() override {
      ListHook<BufferQueue>::unlink();
      this->complete(this->cancelled());
    }
    bool try_take(BufferPool& pool) override {
      Result<Memory> memory = take(pool);
      if (!memory && memory.error() == Errc::kLimit) return false;
      this->complete(std::move(memory));
      return true;
    }
    void give_up() override { this->complete(fail(Errc::kLimit, "no buffer came free in time")); }
    Result<Memory> take(BufferPool& pool) const {
      if constexpr (std::is_same_v<Memory, Buffer>) {
        return pool.allocate(sizes_[0]);
      } else {
        Result<Buffer> first = pool.allocate(sizes_[0]);
        if (!first) return fail(first.error());
        Result<Buffer> second = pool.allocate(sizes_[1]);
        if (!second) return fail(second.error());
        return BufferPair{std::move(*first), std::move(*second)};
      }
    }

    BufferQueue& queue_;
    std::array<size_t, 2> sizes_;
  };

  // Waits for a buffer. kInvalid: larger than any. kLimit: none came free for so long.
  Wait<Buffer> allocate(size_t size, Duration timeout, task::CancelToken token) {
    return {*this, {size, 0}, timeout, token};
  }
  // The same for two, which are there together or not at all.
  Wait<BufferPair> allocate_pair(std::array<size_t, 2> sizes, Duration timeout,
                                 task::CancelToken token) {
    return {*this, sizes, timeout, token};
  }
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
  static void on_time(task::Timer& timer) { static_cast<RetryTimer&>(timer).queue->look_again(); }
  void start(Waiter& place) {
    if (waiting_.empty() && place.try_take(pool_)) return;
    place.until_ = env_.now() + place.timeout_;
    CHECK(place.until_ != Time::never(), "a wait for a buffer has an end");
    waiting_.push_back(place);
    next_end_ = std::min(next_end_, place.until_);
    if (!retry_.is_armed()) env_.arm(retry_, env_.now() + 1_ms);
  }
  void serve() {
    while (Waiter* first = waiting_.front()) {
      waiting_.pop_front();
      if (first->try_take(pool_)) continue;
      waiting_.push_front(*first);
      break;
    }
    if (!waiting_.empty() && !retry_.is_armed()) env_.arm(retry_, env_.now() + 1_ms);
  }
  void look_again() {
    if (env_.now() >= next_end_) end_those_late();
    serve();
  }
  void end_those_late() {
    next_end_ = Time::never();
    waiting_.for_each([this](Waiter& place) {
      if (place.until_ > env_.now()) {
        next_end_ = std::min(next_end_, place.until_);
        return;
      }
      place.unlink();
      place.give_up();
    });
  }

  env::Env& env_;
  BufferPool& pool_;
  List<Waiter, BufferQueue> waiting_;
  Time next_end_ = Time::never();  // no later than the first of their ends
  RetryTimer retry_;
};

}  // namespace cairn::stream
