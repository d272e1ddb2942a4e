// SPDX-License-Identifier: Apache-2.0
// The echo example in a cluster with trouble of every kind, seed by seed. A run is: options drawn
// from the seed, a server and three clients, a while of chaos, then recovery. Checked: a message
// that counts as answered was answered with itself; after recovery every client gets to its end;
// the server then stops with nothing left behind; the same seed gives the same run.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "conformance/seeds.h"
#include "conformance/watchdog.h"
#include "env/address.h"
#include "env/env.h"
#include "examples/echo.h"
#include "sim/cluster.h"
#include "sim/options.h"
#include "task/task.h"

namespace cairn::examples {
namespace {

using conformance::current_test;
using conformance::seeds;
using conformance::Watchdog;
using sim::Cluster;
using sim::ClusterOptions;
using task::Task;

constexpr uint16_t kPort = 7;
constexpr uint64_t kRounds = 200;
constexpr std::array kClients = {"client0", "client1", "client2"};

Task<void> run_server(env::Env& env, env::Address at) {
  const Result<std::unique_ptr<EchoServer>> server = EchoServer::make(env, {.at = std::move(at)});
  // A node that is crashing cannot listen any more.
  if (!server) co_return;
  const Result<void> served = co_await (*server)->run(env.stop_token());
  EXPECT_TRUE(served || served.error() == Errc::kCancelled) << served.error().text();
}

struct Client {
  EchoReport report;
  bool is_done = false;
};
Task<void> run_client(env::Env& env, EchoClientOptions options, Client& client) {
  const Result<void> asked = co_await ask_echo(env, options, client.report, env.stop_token());
  client.is_done = asked.has_value();
}

ClusterOptions draw_options(uint64_t seed) {
  Rng rng(seed);
  ClusterOptions options;
  options.seed = seed;
  options.network.faults = sim::NetworkFaults::rough();
  options.network.faults.segment = rng.uniform();
  options.network.faults.delay = rng.uniform() * 0.05;
  options.network.faults.reset = rng.chance(0.5) ? rng.uniform() * 0.01 : 0;
  options.network.faults.bit_flip = rng.chance(0.3) ? rng.uniform() * 0.01 : 0;
  options.wake_delay_max = rng.chance(0.5) ? 50_us : 0_us;
  return options;
}

// Something bad happens to the server or to a client's way to it, and maybe is over soon.
void strike(Cluster& cluster, Rng& rng) {
  const char* client = kClients[rng.below(kClients.size())];
  sim::Node& server = cluster.node("server");
  switch (rng.below(10)) {
    case 0:
      if (server.is_running()) server.crash();
      break;
    case 1:
      if (server.is_running()) server.kill();
      break;
    case 2:
    case 3:
      if (!server.is_running()) server.restart();
      break;
    case 4:
      cluster.partition("server", client);
      break;
    case 5:
      cluster.partition_one_way("server", client);
      break;
    case 6:
      cluster.partition_one_way(client, "server");
      break;
    case 7:
      cluster.heal();
      break;
    case 8:
      cluster.reset_streams("server", client);
      break;
    default:
      if (server.is_running() && !server.is_paused()) {
        server.pause();
      } else {
        server.resume();
      }
  }
}

struct Outcome {
  uint64_t hash = 0;
  uint64_t failures = 0;
  uint64_t corruptions = 0;
};

Outcome run_echo(uint64_t seed) {
  std::array<Client, kClients.size()> clients;
  Rng rng(mix64(seed));
  Cluster cluster(draw_options(seed));
  sim::Node& server = cluster.node("server");
  server.start([at = server.address(kPort)](env::Env& env) { return run_server(env, at); });
  for (size_t i = 0; i < clients.size(); ++i) {
    const EchoClientOptions options = {.server = server.address(kPort),
                                       .rounds = kRounds,
                                       .message_size = 8 + rng.below(20'000),
                                       .round_limit = 500_ms};
    cluster.node(kClients[i]).start([options, &client = clients[i]](env::Env& env) {
      return run_client(env, options, client);
    });
  }
  for (int i = 0; i < 20; ++i) {
    cluster.run_for(Duration{static_cast<int64_t>(rng.below(200'000'000))});
    strike(cluster, rng);
  }
  cluster.recover();
  const auto all_done = [&] {
    return clients[0].is_done && clients[1].is_done && clients[2].is_done;
  };
  EXPECT_TRUE(cluster.run_until(all_done, 600_s)) << "no progress after recovery";
  server.stop();
  EXPECT_TRUE(cluster.run_until([&] { return !server.is_running(); }, 10_s)) << "does not stop";

  Outcome outcome;
  for (const Client& client : clients) {
    EXPECT_EQ(client.report.rounds, kRounds);
    outcome.failures += client.report.failures;
    outcome.corruptions += client.report.corruptions;
  }
  if (cluster.options().network.faults.bit_flip == 0) {
    EXPECT_EQ(outcome.corruptions, 0u) << "nothing but bit flips changes bytes";
  }
  outcome.hash = cluster.trace_hash();
  if (testing::Test::HasFailure()) std::fprintf(stderr, "%s\n", cluster.report().c_str());
  return outcome;
}

TEST(EchoCluster, EveryMessageIsAnsweredWithItselfWhateverHappens) {
  const Watchdog watchdog(current_test());
  Outcome sum;
  for (const uint64_t seed : seeds(100)) {
    const Outcome outcome = run_echo(seed);
    ASSERT_FALSE(testing::Test::HasFailure()) << "repeat with CAIRN_SEED=" << seed;
    sum.failures += outcome.failures;
    sum.corruptions += outcome.corruptions;
  }
  if (std::getenv("CAIRN_SEED") == nullptr) {
    EXPECT_GT(sum.failures, 100u) << "the trouble is real";
    EXPECT_GT(sum.corruptions, 0u) << "and so are the flipped bits";
  }
}

TEST(EchoCluster, TheSameSeedIsTheSameRun) {
  const Watchdog watchdog(current_test());
  for (const uint64_t seed : seeds(5)) {
    const Outcome first = run_echo(seed);
    const Outcome second = run_echo(seed);
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_NE(first.hash, run_echo(seed + 1000).hash) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn::examples
