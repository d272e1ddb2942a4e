// SPDX-License-Identifier: Apache-2.0
// Task<T>: a coroutine that starts at once and is awaited at most once.
//
//   Task<Result<size_t>> copy(Stream& from, Stream& to);
//   ...
//   Result<size_t> copied = co_await copy(a, b);
//
// A call runs until its first real wait. If it finished by then, co_await goes straight on;
// otherwise the caller is queued (never resumed in place) when the task ends. A Task must be done
// when it is destroyed: to drop one, give it to a Gate (gate.h). To stop one, cancel what it waits
// for (cancel.h) and still await it.
//
// Rules for the code inside (CONTRIBUTING.md, "Coroutines"): co_await is a whole statement; no
// capturing lambda coroutines; no reference to a temporary across a suspension.
#pragma once

#include <coroutine>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/check.h"
#include "task/frame.h"
#include "task/ready.h"

namespace cairn::task {

class Gate;

namespace detail {

void leave_gate(Gate& gate);

struct PromiseBase {
  Waiter* parent = nullptr;  // who awaits this task
  Gate* gate = nullptr;      // or which gate it was given to: then it frees itself

  static void* operator new(size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, size_t size) { free_frame(frame, size); }

  struct Final {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> self) noexcept {
      PromiseBase& promise = self.promise();
      if (promise.parent != nullptr) {
        promise.parent->wake();
      } else if (Gate* owner = promise.gate; owner != nullptr) {
        self.destroy();
        leave_gate(*owner);
      }
    }
    void await_resume() noexcept {}
  };

  std::suspend_never initial_suspend() noexcept { return {}; }
  Final final_suspend() noexcept { return {}; }
  [[noreturn]] void unhandled_exception() noexcept {
    check_failed(__FILE__, __LINE__, "no exception", "an exception left a coroutine");
  }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  auto get_return_object() { return std::coroutine_handle<Promise>::from_promise(*this); }
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  auto get_return_object() { return std::coroutine_handle<Promise>::from_promise(*this); }
  void return_void() noexcept {}
  void take() {}
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;

  // NOLINTNEXTLINE(google-explicit-constructor): how a coroutine makes its return object
  Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      drop();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Task() { drop(); }

  // False for a default-made or moved-from Task.
  bool is_valid() const { return static_cast<bool>(handle_); }
  bool is_done() const { return handle_.done(); }
  // The result of a task that is done, once; for run loops and tests. Others co_await.
  T take() { return handle_.promise().take(); }

  // Waits for the end and leaves the result for take().
  struct Settled {
    std::coroutine_handle<promise_type> handle;
    Waiter waiter;

    bool await_ready() { return handle.done(); }
    void await_suspend(std::coroutine_handle<> parent) {
      CHECK(handle.promise().parent == nullptr, "a task is awaited once");
      waiter.suspend(parent);
      handle.promise().parent = &waiter;
    }
    void await_resume() {}
  };
  struct Awaiter : Settled {
    T await_resume() { return this->handle.promise().take(); }
  };
  // The task must outlive the co_await expression; a temporary does.
  Awaiter operator co_await() { return Awaiter{{handle_, {}}}; }
  Settled settled() { return Settled{handle_, {}}; }

 private:
  friend class Gate;
  void drop() {
    if (!handle_) return;
    CHECK(handle_.done(), "a task ends before it is dropped");
    handle_.destroy();
    handle_ = {};
  }

  std::coroutine_handle<promise_type> handle_;
};

}  // namespace cairn::task
