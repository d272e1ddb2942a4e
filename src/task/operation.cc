// SPDX-License-Identifier: Apache-2.0
#include "task/operation.h"

namespace cairn::task {

bool OperationBase::begin(std::coroutine_handle<> coroutine) {
  CHECK(state_ == State::kIdle, "an operation is awaited once");
  suspend(coroutine);
  state_ = State::kStarting;
  start();
  if (state_ == State::kDone) {
    if (home()->take_inline_turn()) return false;
    wake();
    return true;
  }
  state_ = State::kWaiting;
  if (token_.can_cancel()) {
    // start() may itself have led to the request, for instance by running out of something.
    if (token_.requested()) {
      cancel();
    } else {
      token_.add(hook_);
    }
  }
  return true;
}

void OperationBase::finish() {
  CHECK(is_in_flight(), "an operation completes once, and only after it was started");
  hook_.unlink();
  const bool inside_start = state_ == State::kStarting;
  state_ = State::kDone;
  if (!inside_start) wake();
}

void OperationBase::on_cancel(CancelHook& hook) { static_cast<Hook&>(hook).self->cancel(); }

}  // namespace cairn::task
