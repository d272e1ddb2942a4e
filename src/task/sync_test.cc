// SPDX-License-Identifier: Apache-2.0
#include "task/sync.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "task/deadline.h"
#include "task/task.h"
#include "testing/test_core.h"

namespace cairn::task {
namespace {

Task<Result<void>> acquire(Semaphore& semaphore, size_t units, CancelToken token = {}) {
  Result<void> acquired = co_await semaphore.acquire(units, token);
  co_return acquired;
}
template <class T>
Task<Result<void>> push(Channel<T>& channel, T value, CancelToken token = {}) {
  Result<void> pushed = co_await channel.push(std::move(value), token);
  co_return pushed;
}
template <class T>
Task<Result<T>> pop(Channel<T>& channel, CancelToken token = {}) {
  Result<T> popped = co_await channel.pop(token);
  co_return popped;
}

TEST(Semaphore, ServesInOrderAndIsNotOvertaken) {
  TestCore core;
  Semaphore semaphore(2);
  Task<Result<void>> large = acquire(semaphore, 3);
  Task<Result<void>> small = acquire(semaphore, 1);
  core.run();
  EXPECT_FALSE(small.is_done());
  EXPECT_FALSE(semaphore.try_acquire(1)) << "others wait already";
  semaphore.release(1);
  core.run();
  EXPECT_TRUE(large.is_done());
  EXPECT_FALSE(small.is_done());
  {
    const Units held(semaphore, 3);
  }
  core.run();
  EXPECT_TRUE(small.is_done());
  EXPECT_EQ(semaphore.available(), 2u);
}

TEST(Semaphore, CancelledHeadLetsTheNextThrough) {
  TestCore core;
  Semaphore semaphore(1);
  CancelSource stop;
  Task<Result<void>> large = acquire(semaphore, 5, stop.token());
  Task<Result<void>> small = acquire(semaphore, 1);
  stop.request();
  core.run();
  EXPECT_TRUE(large.take().error() == Errc::kCancelled);
  EXPECT_TRUE(small.take().has_value());
}

TEST(Channel, PushWaitsForRoomAndOrderHolds) {
  TestCore core;
  Channel<int> channel(2);
  std::vector<Task<Result<void>>> pushes;
  for (int i = 0; i < 4; ++i) pushes.push_back(push(channel, i));
  EXPECT_FALSE(pushes[2].is_done());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(channel.try_pop(), i);
    core.run();
  }
  for (auto& each : pushes) EXPECT_TRUE(each.take().has_value());
}

TEST(Channel, HandsOverDirectlyToAWaitingPop) {
  TestCore core;
  Channel<std::unique_ptr<int>> channel(1);
  auto popped = pop(channel);
  EXPECT_TRUE(channel.try_push(std::make_unique<int>(5)));
  core.run();
  EXPECT_EQ(**popped.take(), 5);
}

TEST(Channel, CloseFailsPushesAndDrainsPops) {
  TestCore core;
  Channel<int> channel(1);
  EXPECT_TRUE(push(channel, 1).take().has_value());
  auto stuck = push(channel, 2);
  channel.close();
  core.run();
  EXPECT_TRUE(stuck.take().error() == Errc::kClosed);
  EXPECT_EQ(*pop(channel).take(), 1);
  EXPECT_TRUE(pop(channel).take().error() == Errc::kClosed);
  EXPECT_TRUE(push(channel, 3).take().error() == Errc::kClosed);
}

TEST(Channel, CancelledWaitersLeaveNoTrace) {
  TestCore core;
  Channel<int> channel(1);
  CancelSource stop;
  auto waiting_pop = pop(channel, stop.token());
  stop.request();
  core.run();
  EXPECT_TRUE(waiting_pop.take().error() == Errc::kCancelled);
  EXPECT_TRUE(channel.try_push(1));
  EXPECT_EQ(channel.size(), 1u);
}

Task<Result<void>> doze(Timers& timers, Duration duration, CancelToken token = {}) {
  Result<void> slept = co_await sleep_for(timers, duration, token);
  co_return slept;
}

TEST(Sleep, EndsAtItsTimeAndNotBefore) {
  TestCore core;
  Task<Result<void>> sleep = doze(core, 10_ms);
  core.advance(9999_us);
  EXPECT_FALSE(sleep.is_done());
  core.advance(3_us);
  EXPECT_TRUE(sleep.take().has_value());
}

Task<Result<void>> wait_with_deadline(Timers& timers, Event& event, Duration limit,
                                      CancelToken stop) {
  Deadline deadline(timers, timers.now() + limit, stop);
  Result<void> waited = co_await event.wait(deadline.token());
  co_return waited;
}

TEST(Deadline, EndsTheWaitWithTimedOut) {
  TestCore core;
  Event event;
  auto waiting = wait_with_deadline(core, event, 5_ms, {});
  core.advance(6_ms);
  EXPECT_TRUE(waiting.take().error() == Errc::kTimedOut);
}

TEST(Deadline, ParentReasonWins) {
  TestCore core;
  Event event;
  CancelSource stop;
  auto waiting = wait_with_deadline(core, event, 5_ms, stop.token());
  stop.request();
  core.run();
  EXPECT_TRUE(waiting.take().error() == Errc::kCancelled);
  EXPECT_TRUE(wait_with_deadline(core, event, 5_ms, stop.token()).take().error() ==
              Errc::kCancelled);
}

TEST(Deadline, DoesNothingWhenTheWaitWasFaster) {
  TestCore core;
  Event event;
  auto waiting = wait_with_deadline(core, event, 5_ms, {});
  event.set();
  core.run();
  core.advance(10_ms);
  EXPECT_TRUE(waiting.take().has_value());
}

TEST(CancelSource, ChildFollowsParentNotTheReverse) {
  CancelSource parent;
  CancelSource child(parent.token());
  CancelSource other(parent.token());
  child.request(Errc::kTimedOut);
  EXPECT_FALSE(parent.requested());
  parent.request();
  EXPECT_TRUE(other.requested());
  EXPECT_EQ(child.reason(), Errc::kTimedOut) << "the first request counts";
}

}  // namespace
}  // namespace cairn::task
