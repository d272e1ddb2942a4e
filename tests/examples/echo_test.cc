// SPDX-License-Identifier: Apache-2.0
// The echo example on every world, without trouble; echo_sim_test.cc has the trouble.
#include "examples/echo.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Stream;
using examples::ask_echo;
using examples::EchoClientOptions;
using examples::EchoReport;
using examples::EchoServer;
using task::CancelSource;
using task::Task;

WORLD_TEST_SUITE(Echo);

WORLD_TEST(Echo, AnswersEveryMessageOfEverySize) {
  const std::unique_ptr<EchoServer> server = must(EchoServer::make(env, {.at = scene.any_port()}));
  CancelSource stop;
  Task<Result<void>> serving = server->run(stop.token());
  for (const size_t size : {size_t{8}, size_t{9}, size_t{4096}, size_t{100'000}, size_t{1} << 20}) {
    EchoReport report;
    const EchoClientOptions options = {
        .server = server->local(), .rounds = 5, .message_size = size, .round_limit = 60_s};
    const Result<void> asked = co_await ask_echo(env, options, report, {});
    EXPECT_EQ(outcome(asked), "ok") << size;
    EXPECT_EQ(report.rounds, 5u);
    EXPECT_EQ(report.connections, 1u);
    EXPECT_EQ(report.failures, 0u);
  }
  stop.request();
  const Result<void> served = co_await serving;
  EXPECT_EQ(outcome(served), "ok");
  EXPECT_EQ(server->bytes_echoed(), 5 * (8 + 9 + 4096 + 100'000 + (1 << 20)));
}

WORLD_TEST(Echo, ServesMoreClientsThanItHasPlacesFor) {
  const std::unique_ptr<EchoServer> server =
      must(EchoServer::make(env, {.at = scene.any_port(), .connections_max = 2}));
  CancelSource stop;
  Task<Result<void>> serving = server->run(stop.token());
  std::array<EchoReport, 10> reports;
  std::vector<Task<Result<void>>> clients;
  for (EchoReport& report : reports) {
    const EchoClientOptions options = {
        .server = server->local(), .rounds = 20, .round_limit = 60_s};
    clients.push_back(ask_echo(env, options, report, {}));
  }
  for (Task<Result<void>>& client : clients) {
    const Result<void> asked = co_await client;
    EXPECT_EQ(outcome(asked), "ok");
  }
  for (const EchoReport& report : reports) EXPECT_EQ(report.rounds, 20u);
  stop.request();
  const Result<void> served = co_await serving;
  EXPECT_EQ(outcome(served), "ok");
}

WORLD_TEST(Echo, StopsWithConnectionsOpenAndClientsWaiting) {
  const std::unique_ptr<EchoServer> server = must(EchoServer::make(env, {.at = scene.any_port()}));
  CancelSource stop_server;
  CancelSource stop_client;
  Task<Result<void>> serving = server->run(stop_server.token());
  auto idle = co_await env::connect_stream(env, server->local());
  EXPECT_EQ(outcome(idle), "ok");
  EchoReport report;
  const EchoClientOptions options = {.server = server->local(), .rounds = UINT64_MAX};
  Task<Result<void>> asking = ask_echo(env, options, report, stop_client.token());
  while (report.rounds < 10) co_await turn(env);
  stop_server.request();
  const Result<void> served = co_await serving;
  EXPECT_EQ(outcome(served), "ok");
  stop_client.request();
  const Result<void> asked = co_await asking;
  EXPECT_EQ(outcome(asked), "cancelled");
}

WORLD_TEST(Echo, RefusesMessagesThatFitNoBuffer) {
  EchoReport report;
  for (const size_t size : {size_t{0}, size_t{7}, env.buffers().size_max() + 1}) {
    const EchoClientOptions options = {.server = scene.any_port(), .message_size = size};
    const Result<void> asked = co_await ask_echo(env, options, report, {});
    EXPECT_EQ(outcome(asked), "invalid") << size;
  }
}

}  // namespace
}  // namespace cairn::conformance
