// SPDX-License-Identifier: Apache-2.0
#include "task/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "task/gate.h"
#include "task/sync.h"
#include "task/when_all.h"
#include "testing/test_core.h"

namespace cairn::task {
namespace {

Task<int> immediate(int value) { co_return value; }

Task<int> after(Event& event, int value) {
  const Result<void> waited = co_await event.wait();
  co_return waited ? value : -1;
}

Task<int> sum(Event& event) {
  const int a = co_await immediate(1);
  const int b = co_await after(event, 2);
  co_return a + b;
}

TEST(Task, StartsAtOnceAndRunsToItsFirstWait) {
  TestCore core;
  Event event;
  Task<int> task = sum(event);
  EXPECT_FALSE(task.is_done());
  event.set();
  EXPECT_FALSE(task.is_done()) << "a wake goes through the queue";
  core.run();
  ASSERT_TRUE(task.is_done());
  EXPECT_EQ(task.take(), 3);
}

TEST(Task, CarriesMoveOnlyResults) {
  TestCore core;
  auto make = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
  Task<std::unique_ptr<int>> task = make();
  EXPECT_EQ(*task.take(), 7);
}

Task<void> note(Event& event, std::vector<int>& order, int id) {
  const Result<void> waited = co_await event.wait();
  if (waited) order.push_back(id);
}

TEST(Task, WakesInTheOrderTheyWaited) {
  TestCore core;
  Event event;
  std::vector<int> order;
  std::vector<Task<void>> tasks;
  for (int i = 0; i < 5; ++i) tasks.push_back(note(event, order, i));
  event.set();
  core.run();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

Task<int> nested(int depth) {
  if (depth == 0) co_return 0;
  const int below = co_await nested(depth - 1);
  co_return below + 1;
}

Task<void> spin(Event& event, int times) {
  for (int i = 0; i < times; ++i) {
    const Result<void> waited = co_await event.wait();
    if (!waited) co_return;
  }
}

TEST(Task, AMillionReadyWaitsDoNotGrowTheStack) {
  TestCore core;
  Event event;
  event.set();
  Task<void> task = spin(event, 1'000'000);
  core.run();
  EXPECT_TRUE(task.is_done());
  EXPECT_EQ(nested(100).take(), 100);
}

TEST(Task, SteadyStateTakesNoFramesFromTheHeap) {
  TestCore core;
  Event event;
  auto once = [&] {
    event.reset();
    Task<int> task = sum(event);
    event.set();
    core.run();
    return task.take();
  };
  once();
  [[maybe_unused]] const uint64_t before = frame_heap_count();
  for (int i = 0; i < 100; ++i) once();
#if !__has_feature(address_sanitizer)
  EXPECT_EQ(frame_heap_count(), before);
#endif
}

TEST(Task, BusyOneDoesNotStarveOthers) {
  TestCore core;
  Event always;
  always.set();
  Event event;
  std::vector<int> order;
  Task<void> other = note(event, order, 1);
  Task<void> busy = spin(always, 1000);
  event.set();
  core.ready().run(10);
  EXPECT_EQ(order.size(), 1u);
  core.run();
  EXPECT_TRUE(busy.is_done());
}

TEST(WhenAll, GathersInOrderWhateverFinishesFirst) {
  TestCore core;
  Event first;
  Event second;
  auto idle = []() -> Task<void> { co_return; };
  auto all = when_all(after(first, 1), after(second, 2), idle());
  second.set();
  core.run();
  EXPECT_FALSE(all.is_done());
  first.set();
  core.run();
  ASSERT_TRUE(all.is_done());
  EXPECT_EQ(std::get<0>(all.take()), 1);
}

TEST(WhenAll, TakesAVector) {
  TestCore core;
  Event event;
  std::vector<Task<int>> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(after(event, i));
  Task<std::vector<int>> all = when_all(std::move(tasks));
  event.set();
  core.run();
  EXPECT_EQ(all.take()[9], 9);
}

TEST(Gate, CloseWaitsForEverythingInside) {
  TestCore core;
  Gate gate;
  Event event;
  std::vector<int> order;
  gate.spawn(note(event, order, 1));
  gate.spawn(note(event, order, 2));
  ASSERT_TRUE(gate.enter());
  Task<void> closing = gate.close();
  EXPECT_TRUE(gate.enter().error() == Errc::kClosed);
  event.set();
  core.run();
  EXPECT_FALSE(closing.is_done());
  gate.leave();
  core.run();
  EXPECT_TRUE(closing.is_done());
  EXPECT_EQ(order.size(), 2u);
}

TEST(Gate, EmptyClosesAtOnce) {
  TestCore core;
  Gate gate;
  EXPECT_TRUE(gate.close().is_done());
}

TEST(TaskDeathTest, DroppingAWaitingTaskIsABug) {
  EXPECT_DEATH(
      {
        TestCore core;
        Event event;
        Task<int> dropped = sum(event);
      },
      "a task ends before it is dropped");
}

}  // namespace
}  // namespace cairn::task
