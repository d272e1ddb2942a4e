// SPDX-License-Identifier: Apache-2.0
// Join: waits for the parts of one request, which run as tasks of a gate.
#pragma once

#include <cstddef>

#include "base/error.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

// Lives in the task that waits; add() before each part starts, finish() when it ends, all() once.
class Join {
 public:
  void add() { ++left_; }
  void finish(const Result<void>& result) {
    if (!result && result_) result_ = result;
    if (--left_ == 0) done_.set();
  }
  // When all parts have ended: the first error, if any.
  task::Task<Result<void>> all() {
    finish({});  // the one that holds it open until all were added
    const Result<void> waited = co_await done_.wait();
    co_return waited ? result_ : waited;
  }

 private:
  size_t left_ = 1;
  Result<void> result_;
  task::Event done_;
};

}  // namespace cairn::drive
