// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <new>
#include <nlohmann/json.hpp>

#include "bench/alloc_count.h"
#include "bench/raw_sockets.h"
#include "bench/runtime.h"
#include "bench/sim_speed.h"
#include "bench/task_cost.h"

namespace cairn::bench {
namespace {

Load tiny_load() {
  Load load;
  load.seconds = 0.02;
  load.warm_up_seconds = 0.005;
  load.server_cpu = -1;
  load.client_cpu = -1;
  return load;
}

TEST(Meter, CountsFromTheEndOfTheWarmUpToTheLastEvent) {
  Load load;
  load.warm_up_seconds = 1;
  Meter meter(load);
  const Time start{1'000'000'000};
  EXPECT_FALSE(meter.add(100, start));
  EXPECT_FALSE(meter.add(100, start + 500_ms));
  EXPECT_FALSE(meter.add(100, start + 1_s));
  EXPECT_TRUE(meter.add(30, start + 2_s));
  EXPECT_TRUE(meter.add(10, start + 3_s));
  EXPECT_EQ(meter.total(), 340U);
  EXPECT_DOUBLE_EQ(meter.per_second(), 20);
}

TEST(Meter, CountsFromTheFirstEventWhenTheWarmUpTookTheRest) {
  Load load;
  load.warm_up_seconds = 1;
  Meter meter(load);
  const Time start{1'000'000'000};
  meter.add(100, start);
  meter.add(30, start + 500_ms);
  EXPECT_DOUBLE_EQ(meter.per_second(), 60);
  meter.add(30, start + 2_s);
  EXPECT_DOUBLE_EQ(meter.per_second(), 30);
}

TEST(Meter, OneBurstAfterTheWarmUpCountsFromTheFirstEvent) {
  Load load;
  load.warm_up_seconds = 1;
  Meter meter(load);
  const Time start{1'000'000'000};
  meter.add(10, start);
  for (int i = 0; i < 3; ++i) meter.add(10, start + 2_s);
  EXPECT_DOUBLE_EQ(meter.per_second(), 15);
}

TEST(Turns, HaveAMinimumOnAMachineTooBusyForThem) {
  Turns turns(Load{});
  const Time late = now() + 1000_s;
  int count = 0;
  while (turns.goes_on(late)) ++count;
  EXPECT_GT(count, 10);
}

TEST(Meter, MeasuresWhatAMachineTooBusyDidAfterItsTime) {
  Load load;
  load.warm_up_seconds = 1;
  Meter meter(load);
  const Time late = now() + 1000_s;
  EXPECT_FALSE(meter.add(1, late));
  EXPECT_TRUE(meter.add(1, late + 1_ms)) << "though the warm-up is not over";
}

TEST(Meter, NothingMeasuredIsZero) { EXPECT_EQ(Meter(Load{}).per_second(), 0); }

TEST(RawSockets, EveryBaselineMovesBytes) {
  for (const auto run : {raw_blocking_stream, raw_epoll_stream}) {
    const Result<Sample> sample = run(tiny_load());
    ASSERT_TRUE(sample) << sample.error().text();
    EXPECT_GT(sample->per_second, 1e6);
    EXPECT_GT(sample->cpu_us_per_operation, 0);
  }
}

TEST(RawSockets, EveryBaselineMakesRoundTrips) {
  for (const auto run : {raw_blocking_pingpong, raw_epoll_pingpong}) {
    const Result<Sample> sample = run(tiny_load());
    ASSERT_TRUE(sample) << sample.error().text();
    EXPECT_GT(sample->per_second, 100);
    EXPECT_GT(sample->latency_ns.count(), 0U);
    EXPECT_GT(sample->latency_ns.p50(), 0U);
  }
}

TEST(RawSockets, ACpuThatIsNotThereIsAnError) {
  Load load = tiny_load();
  load.client_cpu = 1000;
  EXPECT_FALSE(raw_blocking_stream(load));
  EXPECT_FALSE(raw_epoll_pingpong(load));
  load.client_cpu = 1'000'000;
  EXPECT_FALSE(raw_blocking_stream(load));
}

TEST(AllocCount, CountsOperatorNew) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer has its own operator new";
  const uint64_t before = allocation_count();
  // Called as functions: a compiler may leave out a new expression whose result it does not need.
  ::operator delete(::operator new(100));
  EXPECT_EQ(allocation_count() - before, 1U);
}

TEST(TaskCost, ChildTasksDoNotAllocateInASteadyState) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer has its own operator new";
  const TaskCost immediate = immediate_task_cost(1000);
  EXPECT_EQ(immediate.allocations, 0);
  EXPECT_GT(immediate.ns, 0);
  EXPECT_EQ(suspended_task_cost(1000).allocations, 0);
}

TEST(SimSpeed, TheEchoClusterMakesRounds) {
  const SimSpeed speed = sim_echo_speed({.seconds = 0.01, .clients = 2});
  EXPECT_GT(speed.rounds, 0U);
  EXPECT_GT(speed.events_per_second, 0);
  EXPECT_GT(speed.simulated_seconds_per_second, 0);
}

TEST(BenchRuntime, OnlyRunsWhatIsAskedFor) {
  RuntimeOptions options;
  options.rounds = 2;
  options.load = tiny_load();
  options.only = {"pingpong"};
  options.skipped = {{"uring", "not built in"}};
  const Result<Report> report = bench_runtime(options);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_NE(report->find("pingpong", "raw_epoll"), nullptr);
  EXPECT_EQ(report->find("pingpong", "raw_epoll")->samples.size(), 2U);
  EXPECT_EQ(report->find("stream", "raw_epoll"), nullptr);
  EXPECT_EQ(report->json()["skipped"]["uring"], "not built in");
}

}  // namespace
}  // namespace cairn::bench
