// SPDX-License-Identifier: Apache-2.0
// call_on: run a function or a task on another core and await its result here.
#pragma once

#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/ids.h"
#include "env/env.h"
#include "task/gate.h"
#include "task/ready.h"
#include "task/task.h"

namespace cairn::env {

namespace detail {

template <class R>
struct TaskResult {
  static constexpr bool kIsTask = false;
  using Type = R;
};
template <class T>
struct TaskResult<task::Task<T>> {
  static constexpr bool kIsTask = true;
  using Type = T;
};

// The round trip: the message travels there, the function runs, the same message travels back.
template <class F>
class CallAwaiter : public Message {
  using Returned = std::invoke_result_t<F&, Env&>;
  using Value = typename TaskResult<Returned>::Type;
  using Slot = std::conditional_t<std::is_void_v<Value>, bool, std::optional<Value>>;

 public:
  CallAwaiter(Env& here, CoreId there, F& function)
      : Message(&CallAwaiter::arrive),
        here_(here),
        home_(here.core()),
        there_(there),
        f_(function) {}

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) {
    waiter_.suspend(coroutine);
    here_.post(there_, *this);
  }
  Value await_resume() {
    if constexpr (!std::is_void_v<Value>) return std::move(*value_);
  }

 private:
  static void arrive(Message& message, Env& there) {
    auto& self = static_cast<CallAwaiter&>(message);
    if constexpr (TaskResult<Returned>::kIsTask) {
      self.driver_ = drive(self, there);
    } else {
      if constexpr (std::is_void_v<Value>) {
        self.f_(there);
      } else {
        self.value_.emplace(self.f_(there));
      }
      self.go_home(there);
    }
  }
  static task::Task<void> drive(CallAwaiter& self, Env& there) {
    if constexpr (std::is_void_v<Value>) {
      co_await self.f_(there);
    } else {
      Value value = co_await self.f_(there);
      self.value_.emplace(std::move(value));
    }
    // The frame ends after this message is queued behind it; freed there, see finish().
    self.run = &CallAwaiter::finish;
    there.post(there.core(), self);
  }
  static void finish(Message& message, Env& there) {
    auto& self = static_cast<CallAwaiter&>(message);
    self.driver_ = {};
    self.go_home(there);
  }
  void go_home(Env& there) {
    run = &CallAwaiter::returned;
    there.post(home_, *this);
  }
  static void returned(Message& message, Env&) {
    static_cast<CallAwaiter&>(message).waiter_.wake();
  }

  Env& here_;
  CoreId home_;
  CoreId there_;
  F& f_;
  Slot value_{};
  task::Task<void> driver_;
  task::Waiter waiter_;
};

}  // namespace detail

// Runs `function(Env& there)` on core `there` and returns its result here; when it returns a Task,
// the task runs there to its end. `function` and what it refers to live here and are used there
// while this core waits: it may read them, and must not touch what this core goes on using.
template <class F>
auto call_on(Env& here, CoreId there, F function)
    -> task::Task<typename detail::TaskResult<std::invoke_result_t<F&, Env&>>::Type> {
  detail::CallAwaiter<F> call(here, there, function);
  if constexpr (std::is_void_v<typename detail::TaskResult<std::invoke_result_t<F&, Env&>>::Type>) {
    co_await call;
  } else {
    co_return co_await call;
  }
}

}  // namespace cairn::env
