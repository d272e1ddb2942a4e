// SPDX-License-Identifier: Apache-2.0
// Operation<T>: the meeting point of a coroutine that waits and a back end that completes.
//
// A subclass says how to start and how to cancel; `co_await operation` starts it and suspends.
// The back end calls complete() exactly once, on the operation's core, possibly already inside
// start(). Cancellation only asks the back end; the completion is what resumes the coroutine, so
// memory lent to the operation is free again when co_await returns, whatever the result.
#pragma once

#include <coroutine>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "task/cancel.h"
#include "task/ready.h"

namespace cairn::task {

class OperationBase : public Waiter {
 public:
  OperationBase(const OperationBase&) = delete;
  OperationBase& operator=(const OperationBase&) = delete;

  bool is_in_flight() const { return state_ == State::kStarting || state_ == State::kWaiting; }

 protected:
  explicit OperationBase(CancelToken token) : token_(token), hook_(&OperationBase::on_cancel) {
    hook_.self = this;
  }
  ~OperationBase() { CHECK(!is_in_flight(), "an operation completes before it is destroyed"); }

  // Begins the work. May complete() at once.
  virtual void start() = 0;
  // Asks for an early end; called at most once, only between start() and complete().
  virtual void cancel() = 0;

  // True when the coroutine stays suspended; false when it goes on at once.
  bool begin(std::coroutine_handle<> coroutine);
  // The subclass has stored the result.
  void finish();
  const CancelToken& token() const { return token_; }

 private:
  enum class State : uint8_t {
    kIdle,      // not awaited yet
    kStarting,  // inside start()
    kWaiting,   // the back end has it
    kDone,
  };
  struct Hook : CancelHook {
    using CancelHook::CancelHook;
    OperationBase* self = nullptr;
  };
  static void on_cancel(CancelHook& hook);

  CancelToken token_;
  Hook hook_;
  State state_ = State::kIdle;
};

template <class T>
class Operation : public OperationBase {
 public:
  void complete(Result<T> result) {
    result_.emplace(std::move(result));
    finish();
  }

  bool await_ready() const { return false; }
  bool await_suspend(std::coroutine_handle<> coroutine) {
    if (token().requested()) {
      result_.emplace(fail(token().error()));
      return false;
    }
    return begin(coroutine);
  }
  Result<T> await_resume() { return std::move(*result_); }

 protected:
  explicit Operation(CancelToken token) : OperationBase(token) {}
  // For back ends: what to complete a cancelled operation with.
  Result<T> cancelled() const { return fail(token().error()); }

 private:
  std::optional<Result<T>> result_;
};

}  // namespace cairn::task
