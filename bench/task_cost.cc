// SPDX-License-Identifier: Apache-2.0
#include "bench/task_cost.h"

#include <coroutine>
#include <cstddef>

#include "base/check.h"
#include "bench/alloc_count.h"
#include "bench/workload.h"
#include "task/ready.h"
#include "task/task.h"

namespace cairn::bench {

namespace {

using task::Task;

// Goes to the end of the ready queue: the shortest real wait there is.
struct Yield {
  task::Waiter waiter;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) {
    waiter.suspend(coroutine);
    waiter.wake();
  }
  void await_resume() const {}
};

[[gnu::noinline]] Task<uint64_t> immediate_child(uint64_t value) { co_return value + 1; }

[[gnu::noinline]] Task<uint64_t> suspended_child(uint64_t value) {
  co_await Yield{};
  co_return value + 1;
}

using Child = Task<uint64_t> (*)(uint64_t);

Task<uint64_t> parent(Child child, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum = co_await child(sum);
  co_return sum;
}

TaskCost measure(Child child, uint64_t count) {
  task::ReadyQueue queue;
  const task::ReadyQueue::Scope scope(queue);
  const auto run = [&](uint64_t times) {
    Task<uint64_t> running = parent(child, times);
    queue.run(SIZE_MAX);
    CHECK(running.take() == times, "every child ran once");
  };
  run(count / 10 + 1);  // fills the frame pool
  const uint64_t allocations = allocation_count();
  const Time start = now();
  run(count);
  const Duration took = now() - start;
  const auto children = static_cast<double>(count);
  return {static_cast<double>(took.ns) / children,
          static_cast<double>(allocation_count() - allocations) / children};
}

}  // namespace

TaskCost immediate_task_cost(uint64_t count) { return measure(&immediate_child, count); }
TaskCost suspended_task_cost(uint64_t count) { return measure(&suspended_child, count); }

}  // namespace cairn::bench
