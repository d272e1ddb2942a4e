// SPDX-License-Identifier: Apache-2.0
#include "world/posix/worker.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "task/when_all.h"
#include "world/epoll/world.h"

namespace cairn::posix {
namespace {

using task::Task;

struct Append {
  std::vector<int>& order;
  int number;
  int operator()() {
    order.push_back(number);
    return number;
  }
};
struct WhoAmI {
  std::thread::id operator()() { return std::this_thread::get_id(); }
};
struct Nothing {
  bool& was_called;
  void operator()() { was_called = true; }
};

Task<void> use_worker(env::Env& env) {
  Worker worker(dynamic_cast<CoreEnv&>(env));
  std::vector<int> order;
  std::vector<Task<int>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(worker.run(Append{order, i}));
  const std::vector<int> values = co_await task::when_all(std::move(calls));
  EXPECT_EQ(values, order);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  const std::thread::id there = co_await worker.run(WhoAmI());
  EXPECT_NE(there, std::this_thread::get_id());
  bool was_called = false;
  co_await worker.run(Nothing{was_called});
  EXPECT_TRUE(was_called);
}

TEST(Worker, RunsCallsInOrderOnAThreadOfItsOwn) {
  epoll::EpollWorld world({});
  EXPECT_TRUE(world.run(&use_worker));
}

}  // namespace
}  // namespace cairn::posix
