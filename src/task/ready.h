// SPDX-License-Identifier: Apache-2.0
// The ready queue: what a core will run next, first in, first out.
//
// Whoever makes a coroutine runnable pushes it here; nobody resumes another's coroutine directly.
// So stacks stay flat, order is the order of events, and a simulation can repeat it exactly.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace cairn::task {

// One entry of a ready queue. Lives in its owner (usually a suspended coroutine's frame) from push
// until run; the queue allocates nothing and so cannot be full.
struct Runnable {
  using Run = void (*)(Runnable&);
  explicit Runnable(Run function) : run(function) {}
  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;

  Run run;
  Runnable* next = nullptr;
};

class ReadyQueue {
 public:
  ReadyQueue() = default;
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  // `entry` must not be in a queue and must live until it is run.
  void push(Runnable& entry) {
    entry.next = nullptr;
    *tail_ = &entry;
    tail_ = &entry.next;
  }
  bool empty() const { return head_ == nullptr; }

  // Runs up to `max` entries, including those pushed meanwhile; returns how many ran.
  size_t run(size_t max);

  // An operation that is done the moment it starts may go on at once instead of through the queue,
  // but only so often in a row: otherwise one busy stream starves its core. True: go on.
  bool take_inline_turn() {
    if (inline_turns_ == 0) return false;
    --inline_turns_;
    return true;
  }

  // The queue of the core this thread is running now; null outside a core's run loop. It is the
  // one ambient value in Cairn (ARCHITECTURE.md, "Tasks"): set by back ends only.
  static ReadyQueue* current() { return current_; }

  // Makes a queue current for a scope; back ends and tests.
  class Scope {
   public:
    explicit Scope(ReadyQueue& queue) : previous_(current_) { current_ = &queue; }
    ~Scope() { current_ = previous_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ReadyQueue* previous_;
  };

 private:
  static constexpr uint32_t kInlineTurns = 32;

  static constinit thread_local ReadyQueue* current_;
  Runnable* head_ = nullptr;
  Runnable** tail_ = &head_;
  uint32_t inline_turns_ = kInlineTurns;
};

// A suspended coroutine that waits to be woken, exactly once per suspension.
class Waiter : public Runnable {
 public:
  Waiter() : Runnable(&Waiter::resume) {}

  // Called from await_suspend, on the core the coroutine runs on.
  void suspend(std::coroutine_handle<> coroutine) {
    coroutine_ = coroutine;
    home_ = ReadyQueue::current();
  }
  // Queues the coroutine on its core. Called on that core (or by the simulator on its behalf).
  void wake() { home_->push(*this); }
  ReadyQueue* home() const { return home_; }

 private:
  static void resume(Runnable& self) { static_cast<Waiter&>(self).coroutine_.resume(); }

  std::coroutine_handle<> coroutine_;
  ReadyQueue* home_ = nullptr;
};

}  // namespace cairn::task
