// SPDX-License-Identifier: Apache-2.0
// How both logs are compacted: window by window, while there is something to do.
#pragma once

#include "base/units.h"
#include "kv/store/core.h"
#include "kv/store/log_space.h"
#include "task/deadline.h"
#include "task/task.h"

namespace cairn::kv::store {

inline constexpr Duration kCompactionRetry = 100_ms;

// Until the store stops. The compactor, of the log with that space, has
//   bool has_work()                whether to take a step; asked again whenever the log is low
//   Task<Result<bool>> step()      a window; false: there was none. After an error it is tried
//   again
// All outlive it.
template <class Compactor>
task::Task<void> compact(Core& core, LogSpace& space, Compactor& compactor) {
  while (!core.stopping.requested()) {
    if (!compactor.has_work()) {
      space.low().reset();
      [[maybe_unused]] const Result<void> woken = co_await space.low().wait(core.stopping.token());
      continue;
    }
    const Result<bool> done = co_await compactor.step();
    if (done && *done) continue;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(core.env, kCompactionRetry, core.stopping.token());
  }
}

}  // namespace cairn::kv::store
