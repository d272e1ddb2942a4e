// SPDX-License-Identifier: Apache-2.0
// Waiting for each other on one core: Event, Semaphore, Channel. All first come, first served.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/list.h"
#include "base/ring.h"
#include "task/operation.h"

namespace cairn::task {

// Something that happens once (until reset) and that any number may wait for.
// Must outlive its waiters, as all of these must.
class Event {
 public:
  class Wait : public Operation<void>, public ListHook<Event> {
   public:
    Wait(Event& event, CancelToken token) : Operation(token), event_(event) {}

   private:
    void start() override {
      if (event_.is_set_) return complete({});
      event_.waiters_.push_back(*this);
    }
    void cancel() override {
      ListHook<Event>::unlink();
      complete(cancelled());
    }
    Event& event_;
  };

  bool is_set() const { return is_set_; }
  void set() {
    is_set_ = true;
    while (Wait* wait = waiters_.pop_front()) wait->complete({});
  }
  void reset() { is_set_ = false; }
  // Done when set. kCancelled, kTimedOut: by the token.
  Wait wait(CancelToken token = {}) { return Wait(*this, token); }

 private:
  List<Wait, Event> waiters_;
  bool is_set_ = false;
};

// Counts units of something limited. A large request is not overtaken by later small ones.
class Semaphore {
 public:
  explicit Semaphore(size_t units) : units_(units) {}

  class Acquire : public Operation<void>, public ListHook<Semaphore> {
   public:
    Acquire(Semaphore& semaphore, size_t units, CancelToken token)
        : Operation(token), semaphore_(semaphore), units_(units) {}

   private:
    friend class Semaphore;
    void start() override {
      if (semaphore_.try_acquire(units_)) return complete({});
      semaphore_.waiters_.push_back(*this);
    }
    void cancel() override {
      ListHook<Semaphore>::unlink();
      complete(cancelled());
      semaphore_.serve();  // those behind a large request may fit
    }
    Semaphore& semaphore_;
    size_t units_;
  };

  // On success the caller holds the units and must release() them.
  Acquire acquire(size_t units = 1, CancelToken token = {}) { return Acquire(*this, units, token); }
  // False when they are not free now, or others wait already.
  bool try_acquire(size_t units = 1) {
    if (!waiters_.empty() || units > units_) return false;
    units_ -= units;
    return true;
  }
  void release(size_t units = 1) {
    units_ += units;
    serve();
  }
  size_t available() const { return units_; }
  bool has_waiters() const { return !waiters_.empty(); }

 private:
  void serve() {
    while (Acquire* first = waiters_.front()) {
      if (first->units_ > units_) return;
      units_ -= first->units_;
      waiters_.pop_front();
      first->complete({});
    }
  }

  List<Acquire, Semaphore> waiters_;
  size_t units_;
};

// Units of a semaphore, released with the scope.
class Units {
 public:
  Units() = default;
  // Takes over `units` that were acquired.
  Units(Semaphore& semaphore, size_t units) : semaphore_(&semaphore), units_(units) {}
  Units(Units&& other) noexcept
      : semaphore_(std::exchange(other.semaphore_, nullptr)), units_(other.units_) {}
  Units& operator=(Units&& other) noexcept {
    if (this != &other) {
      release();
      semaphore_ = std::exchange(other.semaphore_, nullptr);
      units_ = other.units_;
    }
    return *this;
  }
  ~Units() { release(); }
  void release() {
    if (Semaphore* semaphore = std::exchange(semaphore_, nullptr)) semaphore->release(units_);
  }

 private:
  Semaphore* semaphore_ = nullptr;
  size_t units_ = 0;
};

// A bounded queue between tasks: push waits for room, pop waits for a value.
template <class T>
class Channel {
 public:
  explicit Channel(size_t capacity) : values_(capacity) {}

  class Push : public Operation<void>, public ListHook<Channel> {
   public:
    Push(Channel& channel, T&& value, CancelToken token)
        : Operation<void>(token), channel_(channel), value_(std::move(value)) {}

   private:
    friend class Channel;
    void start() override {
      if (channel_.closed_) return this->complete(fail(Errc::kClosed, "channel"));
      if (channel_.try_push(std::move(value_))) return this->complete({});
      channel_.pushers_.push_back(*this);
    }
    void cancel() override {
      ListHook<Channel>::unlink();
      this->complete(this->cancelled());
    }
    Channel& channel_;
    T value_;
  };

  struct PopTag;
  class Pop : public Operation<T>, public ListHook<PopTag> {
   public:
    Pop(Channel& channel, CancelToken token) : Operation<T>(token), channel_(channel) {}

   private:
    friend class Channel;
    void start() override {
      if (std::optional<T> value = channel_.try_pop()) return this->complete(std::move(*value));
      if (channel_.closed_) return this->complete(fail(Errc::kClosed, "channel"));
      channel_.poppers_.push_back(*this);
    }
    void cancel() override {
      ListHook<PopTag>::unlink();
      this->complete(this->cancelled());
    }
    Channel& channel_;
  };

  // Done when the value is queued. kClosed: the channel was closed; the value is dropped.
  Push push(T value, CancelToken token = {}) { return Push(*this, std::move(value), token); }
  // The oldest value. kClosed: closed, and all values taken.
  Pop pop(CancelToken token = {}) { return Pop(*this, token); }

  // False, and `value` untouched, when full or closed.
  bool try_push(T&& value) {
    if (closed_) return false;
    if (Pop* waiting = poppers_.pop_front()) {
      waiting->complete(std::move(value));
      return true;
    }
    return pushers_.empty() && values_.push(std::move(value));
  }
  std::optional<T> try_pop() {
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(values_.pop());
    if (Push* waiting = pushers_.pop_front()) {
      CHECK(values_.push(std::move(waiting->value_)));
      waiting->complete({});
    }
    return value;
  }
  // No value comes in any more; those queued can still be taken. Waiting pushes fail.
  void close() {
    closed_ = true;
    while (Push* waiting = pushers_.pop_front()) waiting->complete(fail(Errc::kClosed, "channel"));
    while (Pop* waiting = poppers_.pop_front()) waiting->complete(fail(Errc::kClosed, "channel"));
  }
  bool is_closed() const { return closed_; }
  size_t size() const { return values_.size(); }

 private:
  Ring<T> values_;
  List<Push, Channel> pushers_;
  List<Pop, PopTag> poppers_;
  bool closed_ = false;
};

}  // namespace cairn::task
