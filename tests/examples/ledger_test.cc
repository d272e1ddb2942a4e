// SPDX-License-Identifier: Apache-2.0
// The ledger example on every world; tests/rpc has calls under faults.
#include "examples/ledger.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "rpc/server.h"
#include "task/when_all.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using examples::Ledger;
using examples::LedgerClient;
using task::Task;

WORLD_TEST_SUITE(LedgerExample);

WORLD_TEST(LedgerExample, AddsWhatManyCallsAtOnceSay) {
  Ledger ledger;
  rpc::Server server(env, ledger);
  const env::Address at = must(server.listen(scene.any_port()));
  LedgerClient client(env, {.servers = {at}});
  std::vector<Task<Result<uint64_t>>> adding;
  for (uint64_t amount = 1; amount <= 300; ++amount) adding.push_back(client.add(amount));
  const std::vector<Result<uint64_t>> added = co_await task::when_all(std::move(adding));
  for (const Result<uint64_t>& each : added) EXPECT_EQ(outcome(each), "ok");
  const Result<uint64_t> total = co_await client.total();
  EXPECT_EQ(outcome(total), "ok");
  EXPECT_EQ(*total, 300u * 301 / 2);
  const Result<uint64_t> full = co_await client.add(UINT64_MAX);
  EXPECT_EQ(outcome(full), "limit");
  co_await client.close();
  co_await server.close();
}

WORLD_TEST(LedgerExample, TellsThoseWhoFollowIt) {
  Ledger ledger;
  rpc::Server server(env, ledger);
  const env::Address at = must(server.listen(scene.any_port()));
  LedgerClient client(env, {.servers = {at}});
  LedgerClient other(env, {.servers = {at}});
  Task<Result<void>> waiting = client.await_total(10);
  for (int i = 0; i < 10; ++i) {
    const Result<uint64_t> added = co_await other.add(1);
    EXPECT_EQ(outcome(added), "ok");
  }
  const Result<void> reached = co_await waiting;
  EXPECT_EQ(outcome(reached), "ok");
  co_await client.close();
  co_await other.close();
  co_await server.close();
}

}  // namespace
}  // namespace cairn::conformance
