// SPDX-License-Identifier: Apache-2.0
#include "world/sim/cluster.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "task/deadline.h"
#include "world/sim/options.h"
#include "world/sim/testing.h"

namespace cairn::sim {
namespace {

using env::Env;
using task::Task;

Task<void> sleeper(Env& env, Duration duration, std::vector<int64_t>& log) {
  const Result<void> slept = co_await task::sleep_for(env, duration, env.stop_token());
  log.push_back(slept ? env.now().ns : -1);
}

TEST(Cluster, TimersAreExactToTheNanosecond) {
  std::vector<int64_t> log;
  Cluster cluster;
  cluster.node("a").start([&](Env& env) { return sleeper(env, 1'234'567_ns, log); });
  cluster.run_for(1_ms);
  EXPECT_TRUE(cluster.node("a").is_running());
  cluster.run_for(1_ms);
  EXPECT_EQ(log, std::vector<int64_t>{1'234'567});
  EXPECT_FALSE(cluster.node("a").is_running());
  EXPECT_EQ(cluster.now(), Time{2'000'000});
}

TEST(Cluster, StopEndsAProgramInGoodOrder) {
  std::vector<int64_t> log;
  Cluster cluster;
  cluster.node("a").start([&](Env& env) { return sleeper(env, 10_s, log); });
  cluster.run_for(1_s);
  cluster.node("a").stop();
  cluster.run_for(1_us);
  EXPECT_FALSE(cluster.node("a").is_running());
  EXPECT_EQ(log, std::vector<int64_t>{-1});
}

TEST(Cluster, EchoAcrossTwoNodes) {
  EchoStats stats;
  Cluster cluster;
  cluster.node("server").start(echo_server(7));
  const env::Address at = cluster.node("server").address(7);
  cluster.node("client").start(echo_client(at, {.rounds = 100, .size = 4096}, stats));
  ASSERT_TRUE(cluster.run_until([&] { return stats.rounds == 100; }, 10_s));
  EXPECT_EQ(stats.errors, 0u);
  EXPECT_GE(cluster.now().ns, 100 * 50'000) << "a round takes two latencies";
}

uint64_t hash_of_run(uint64_t seed) {
  EchoStats stats;
  ClusterOptions options{.seed = seed};
  options.network.faults = NetworkFaults::rough();
  Cluster cluster(options);
  cluster.node("server").start(echo_server(7));
  const env::Address at = cluster.node("server").address(7);
  cluster.node("client").start(echo_client(at, {.rounds = 200, .size = 9000}, stats));
  cluster.run_for(500_ms);
  cluster.node("server").crash();
  cluster.run_for(100_ms);
  cluster.node("server").restart();
  cluster.run_for(3_s);
  EXPECT_GT(cluster.events_run(), 1000u);
  return cluster.trace_hash();
}

TEST(Cluster, SameSeedGivesTheSameTraceHash) {
  EXPECT_EQ(hash_of_run(5), hash_of_run(5));
  EXPECT_NE(hash_of_run(5), hash_of_run(6));
}

}  // namespace
}  // namespace cairn::sim
