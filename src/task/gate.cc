// SPDX-License-Identifier: Apache-2.0
#include "task/gate.h"

#include <utility>

namespace cairn::task {

namespace detail {
void leave_gate(Gate& gate) { gate.leave(); }
}  // namespace detail

void Gate::spawn(Task<void> task) {
  const auto handle = std::exchange(task.handle_, {});
  if (handle.done()) return handle.destroy();
  CHECK(handle.promise().parent == nullptr, "a task has one owner");
  handle.promise().gate = this;
  ++count_;
}

Result<void> Gate::enter() {
  if (closed_) return fail(Errc::kClosed, "gate");
  ++count_;
  return {};
}

void Gate::leave() {
  CHECK(count_ > 0);
  --count_;
  if (count_ == 0 && closed_) empty_.set();
}

Task<void> Gate::close() {
  closed_ = true;
  while (count_ > 0) {
    empty_.reset();
    const Result<void> emptied = co_await empty_.wait();
    CHECK(emptied.has_value());
  }
}

}  // namespace cairn::task
