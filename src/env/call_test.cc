// SPDX-License-Identifier: Apache-2.0
#include "env/call.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "task/sync.h"
#include "task/task.h"
#include "testing/test_env.h"

namespace cairn::env {
namespace {

using task::Event;
using task::Task;

TEST(CallOn, RunsThereAndReturnsTheValueHere) {
  TestCores cores(2);
  auto call = cores.on(0, [&] {
    return call_on(cores[0], CoreId(1), [](Env& there) { return there.core().value() * 10; });
  });
  EXPECT_FALSE(call.is_done()) << "never inside the call";
  cores.run();
  ASSERT_TRUE(call.is_done());
  EXPECT_EQ(call.take(), 10u);
}

TEST(CallOn, RunsAFunctionThatReturnsNothing) {
  TestCores cores(3);
  CoreId ran_on;
  Task<void> call = cores.on(0, [&] {
    return call_on(cores[0], CoreId(2), [&ran_on](Env& there) { ran_on = there.core(); });
  });
  cores.run();
  EXPECT_TRUE(call.is_done());
  EXPECT_EQ(ran_on, CoreId(2));
}

TEST(CallOn, ToTheOwnCoreStillGoesThroughTheMailbox) {
  TestCores cores(1);
  bool ran = false;
  Task<void> call =
      cores.on(0, [&] { return call_on(cores[0], CoreId(0), [&ran](Env&) { ran = true; }); });
  EXPECT_FALSE(ran);
  EXPECT_TRUE(cores[0].has_mail());
  cores.run();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(call.is_done());
}

TEST(CallOn, CarriesMoveOnlyValues) {
  TestCores cores(2);
  auto call = cores.on(0, [&] {
    return call_on(cores[0], CoreId(1), [](Env&) { return std::make_unique<int>(7); });
  });
  cores.run();
  EXPECT_EQ(*call.take(), 7);
}

Task<Result<int>> wait_there(Env& there, Event& event, int value) {
  const Result<void> waited = co_await event.wait();
  if (!waited) co_return fail(waited.error());
  co_return value + static_cast<int>(there.core().value());
}

TEST(CallOn, RunsATaskThereToItsEnd) {
  TestCores cores(2);
  Event event;
  auto call = cores.on(0, [&] {
    return call_on(cores[0], CoreId(1),
                   [&event](Env& there) { return wait_there(there, event, 41); });
  });
  cores.run();
  EXPECT_FALSE(call.is_done()) << "the task there still waits";
  event.set();
  cores.run();
  ASSERT_TRUE(call.is_done());
  EXPECT_EQ(call.take().value(), 42);
}

Task<Result<int>> refuse_at_once() { co_return fail(Errc::kDenied, "a task that never waits"); }

TEST(CallOn, PassesOnTheErrorOfATaskThatEndsAtOnce) {
  TestCores cores(2);
  auto call = cores.on(
      0, [&] { return call_on(cores[0], CoreId(1), [](Env&) { return refuse_at_once(); }); });
  cores.run();
  ASSERT_TRUE(call.is_done());
  EXPECT_TRUE(call.take().error() == Errc::kDenied);
}

Task<void> set_there(bool& done) {
  done = true;
  co_return;
}

TEST(CallOn, RunsATaskWithoutAResult) {
  TestCores cores(2);
  bool done = false;
  Task<void> call = cores.on(
      0, [&] { return call_on(cores[0], CoreId(1), [&done](Env&) { return set_there(done); }); });
  cores.run();
  EXPECT_TRUE(done);
  EXPECT_TRUE(call.is_done());
}

TEST(CallOn, KeepsTheOrderOfCallsToOneCore) {
  TestCores cores(2);
  std::vector<int> order;
  std::vector<Task<void>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(cores.on(0, [&] {
      return call_on(cores[0], CoreId(1), [&order, i](Env&) { order.push_back(i); });
    }));
  }
  cores.run();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
  for (Task<void>& call : calls) EXPECT_TRUE(call.is_done());
}

Task<uint32_t> relay(Env& here) {
  const uint32_t beyond =
      co_await call_on(here, CoreId(2), [](Env& there) { return there.core().value(); });
  co_return beyond * 10 + here.core().value();
}

TEST(CallOn, MayBeCalledFromWithinACall) {
  TestCores cores(3);
  auto call = cores.on(
      0, [&] { return call_on(cores[0], CoreId(1), [](Env& there) { return relay(there); }); });
  cores.run();
  ASSERT_TRUE(call.is_done());
  EXPECT_EQ(call.take(), 21u);
}

}  // namespace
}  // namespace cairn::env
