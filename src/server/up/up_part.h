// SPDX-License-Identifier: Apache-2.0
// UpPart: a part of `cairn up` that serves until it is told to end.
#pragma once

#include <utility>

#include "base/problem.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::server {

struct UpPart {
  task::CancelSource stop;
  task::Gate gate;
  task::Event moved;  // it is ready, or has ended
  bool is_ready = false;
  bool has_ended = false;
  Attempt<void> outcome;

  void ended(Attempt<void> how) {
    outcome = std::move(how);
    has_ended = true;
    moved.set();
  }
  void ready() {
    is_ready = true;
    moved.set();
  }
  task::Task<void> close() {
    stop.request();
    co_await gate.close();
  }
};

}  // namespace cairn::server
