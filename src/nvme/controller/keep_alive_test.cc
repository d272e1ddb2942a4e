// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "nvme/controller/registry_testing.h"

#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using env::Env;
using task::Task;

class KeepAlive : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Cores, KeepAlive, ::testing::Values(1, 3));

constexpr auto kExpired = "keep alive timed out";

// An admin queue and an I/O queue on the last core.
Task<void> arrive(Env& env, TestHost& host, uint32_t ms) {
  host.connect.keep_alive_ms = ms;
  co_await host.arrive();
  const ConnectReply reply = co_await host.connect_queue(1, CoreId(env.core_count() - 1));
  EXPECT_TRUE(reply.status.ok());
}

SIM_TEST_P(KeepAlive, SilenceEndsEveryQueue) {
  co_await serve(registry);
  TestHost host(registry);
  co_await arrive(env, host, 1000);
  co_await let_pass(env, 990_ms);  // the commands of arriving were traffic
  EXPECT_EQ(host.links[0]->disconnected_why, "");
  co_await let_pass(env, 1100_ms);
  EXPECT_EQ(host.links[0]->disconnected_why, kExpired);
  EXPECT_EQ(host.links[1]->disconnected_why, kExpired);
  const ConnectReply reply = co_await host.connect_queue(2);
  EXPECT_EQ(reply.status, StatusCode::kConnectInvalidParameters);
  co_await host.leave_all();
}

SIM_TEST_P(KeepAlive, TheCommandRestartsTheTimer) {
  co_await serve(registry);
  TestHost host(registry);
  co_await arrive(env, host, 1000);
  for (int i = 0; i < 20; ++i) {
    co_await let_pass(env, 900_ms);
    const Cqe cqe = co_await host.admin(Sqe::make(AdminOpcode::kKeepAlive));
    EXPECT_TRUE(cqe.get_status().ok());
  }
  EXPECT_EQ(host.links[0]->disconnected_why, "");
  co_await host.leave_all();
}

SIM_TEST_P(KeepAlive, TrafficOnAnIoQueueRestartsTheTimer) {
  co_await serve(registry);
  TestHost host(registry);
  co_await arrive(env, host, 1000);
  TestLink& io = *host.links[1];
  for (int i = 0; i < 20; ++i) {
    co_await let_pass(env, 900_ms);
    co_await env::call_on(env, CoreId(env.core_count() - 1), [&io](Env&) { io.traffic = true; });
  }
  EXPECT_EQ(io.disconnected_why, "");
  co_await let_pass(env, 2100_ms);
  EXPECT_EQ(io.disconnected_why, kExpired);
  co_await host.leave_all();
}

SIM_TEST_P(KeepAlive, ZeroIsNever) {
  co_await serve(registry);
  TestHost host(registry);
  co_await arrive(env, host, 0);
  co_await let_pass(env, 36'000_s);
  EXPECT_EQ(host.links[0]->disconnected_why, "");
  // Switched on later, by the feature.
  Cqe cqe = co_await host.set_feature(Feature::kKeepAlive, 1234);
  EXPECT_TRUE(cqe.get_status().ok());
  cqe = co_await host.get_feature(Feature::kKeepAlive);
  EXPECT_EQ(cqe.dw0, 1300u) << "rounded up to the granularity";
  co_await let_pass(env, 3_s);
  EXPECT_EQ(host.links[0]->disconnected_why, kExpired);
  co_await host.leave_all();
}

SIM_TEST_P(KeepAlive, DiscoveryWithoutItIdlesOut) {
  TestHost idle(registry, 1);
  TestHost persistent(registry, 2);
  for (TestHost* host : {&idle, &persistent}) host->data.subsystem_nqn.set(kDiscoveryNqn);
  persistent.connect.keep_alive_ms = 200'000;
  co_await idle.arrive();
  co_await persistent.arrive();
  co_await let_pass(env, 119_s);
  EXPECT_EQ(idle.links[0]->disconnected_why, "");
  co_await let_pass(env, 125_s);
  EXPECT_EQ(idle.links[0]->disconnected_why, kExpired);
  EXPECT_EQ(persistent.links[0]->disconnected_why, "");
  co_await idle.leave_all();
  co_await persistent.leave_all();
}

}  // namespace
}  // namespace cairn::nvme
