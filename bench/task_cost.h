// SPDX-License-Identifier: Apache-2.0
// What awaiting a child task costs, on a bare ready queue.
#pragma once

#include <cstdint>

namespace cairn::bench {

struct TaskCost {
  double ns = 0;           // per child task: call, await, result, frame back
  double allocations = 0;  // heap allocations per child task in a steady state
};

// A child that has its result before the first wait.
TaskCost immediate_task_cost(uint64_t count);
// A child that suspends once, is woken through the ready queue and then wakes its parent.
TaskCost suspended_task_cost(uint64_t count);

}  // namespace cairn::bench
