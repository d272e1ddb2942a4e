// SPDX-License-Identifier: Apache-2.0
// Gate: an owner for tasks nobody awaits, so that closing waits for all of them.
#pragma once

#include <cstddef>

#include "base/check.h"
#include "base/error.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::task {

// Belongs to an object whose methods run as tasks of their own. The object closes its gate and
// awaits it before it is destroyed; CHECKed. Core-local.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { CHECK(count_ == 0, "a gate is closed before it is destroyed"); }

  // Takes over a task: it runs on by itself and is freed when it ends. Also after close(), because
  // a task that has started cannot be refused; ask is_closed() before starting one.
  void spawn(Task<void> task);

  // For work that is not a Task: kClosed after close(); else leave() must follow.
  Result<void> enter();
  void leave();

  // Closes to enter() and completes when everything inside has left. It does not stop anybody:
  // request the cancel source that those inside listen to. Once.
  Task<void> close();

  bool is_closed() const { return closed_; }
  size_t count() const { return count_; }

 private:
  Event empty_;
  size_t count_ = 0;
  bool closed_ = false;
};

}  // namespace cairn::task
