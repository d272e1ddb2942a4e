// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/runtime.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "bench/leapio/runtime_scene.h"
#include "drive/source.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "world/sim/cluster.h"

namespace cairn::bench::leapio {
namespace {

// How long each of `count` reads takes that begin together on a drive that takes no time, after
// the runtime was idle for a while.
std::vector<Duration> times_of(int count, const RuntimeCosts& costs, Duration idle = 0_s) {
  struct Run {
    static task::Task<void> read(env::Env& env, drive::Drive& drive, Duration& took) {
      std::array<std::byte, 4096> memory;
      const Time start = env.now();
      const Result<void> done = co_await drive.read(Lba(0), memory);
      EXPECT_TRUE(done.has_value());
      took = env.now() - start;
    }
    static task::Task<void> all(env::Env& env, RuntimeCosts costs, Duration idle,
                                std::vector<Duration>& times) {
      auto source = drive::Source::make(env, drive::Spec::parse("mem:size=1M").value()).value();
      std::unique_ptr<drive::Drive> drive = with_runtime(env, source->open(env).value(), costs);
      EXPECT_TRUE((co_await task::sleep_for(env, idle)).has_value());
      task::Gate gate;
      for (Duration& took : times) gate.spawn(read(env, *drive, took));
      co_await gate.close();
      co_await drive->close();
      drive.reset();
      co_await source->close(env);
    }
  };
  std::vector<Duration> times(static_cast<size_t>(count));
  sim::Cluster cluster({.seed = 1});
  sim::Node& host = cluster.node("host");
  host.start([&](env::Env& env) { return Run::all(env, costs, idle, times); });
  EXPECT_TRUE(cluster.run_until([&] { return !host.is_running(); }, 10_s));
  return times;
}

TEST(Runtime, CommandsCostOneCoreOneAfterTheOther) {
  const RuntimeCosts costs{.access = 0_s, .submit = 10_us, .complete = 20_us};
  EXPECT_EQ(times_of(1, costs)[0].ns, (30_us).ns);
  // The core takes both in, then gives both back.
  const std::vector<Duration> two = times_of(2, costs);
  EXPECT_EQ(two[0].ns, (40_us).ns);
  EXPECT_EQ(two[1].ns, (60_us).ns);
}

TEST(Runtime, QueuesAreReachedForAllCommandsTogether) {
  const RuntimeCosts costs{.access = 5_us, .submit = 1_us, .complete = 1_us};
  const std::vector<Duration> one = times_of(1, costs);
  const std::vector<Duration> three = times_of(3, costs);
  // An empty round, then four queues and the command itself.
  EXPECT_EQ(one[0].ns, (10_us + 4 * 5_us + 2_us).ns);
  for (const Duration each : three) EXPECT_EQ(each.ns, (10_us + 4 * 5_us + 6_us).ns);
}

TEST(Runtime, AnIdleOneIsMetInTheMiddleOfALook) {
  const RuntimeCosts costs{.access = 5_us, .submit = 1_us, .complete = 1_us};
  const Duration early = times_of(1, costs, 103_us)[0];
  const Duration late = times_of(1, costs, 109_us)[0];
  EXPECT_EQ((early - late).ns, (6_us).ns);
}

TEST(Runtime, OnACardIsSlowerAndReachesQueuesByTheNetworkUnlessTheyAreItsOwn) {
  const RuntimeCosts host = costs_of({.runtime = Placement::kHost});
  const RuntimeCosts card = costs_of({.runtime = Placement::kCoprocessor});
  const RuntimeCosts far = costs_of({.runtime = Placement::kCoprocessor, .remote = true});
  EXPECT_EQ(host.access.ns, 0);
  EXPECT_EQ(card.access.ns, kQueueAccess.ns);
  EXPECT_EQ(far.access.ns, 0);
  EXPECT_NEAR(static_cast<double>(host.submit.ns) / static_cast<double>(card.submit.ns),
              kCoprocessorSpeed, 0.01);
}

}  // namespace
}  // namespace cairn::bench::leapio
