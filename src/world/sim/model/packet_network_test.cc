// SPDX-License-Identifier: Apache-2.0
// Streams of the simulated world over modelled switches.
#include "world/sim/model/packet_network.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/buffer.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "world/sim/cluster.h"
#include "world/sim/testing.h"

namespace cairn::sim {
namespace {

using env::Env;
using task::Task;

constexpr uint16_t kPort = 7;

ClusterOptions over(net::Topology topology, net::Parameters parameters = {}) {
  ClusterOptions options;
  options.network.model = packet_network(std::move(topology), std::move(parameters));
  options.network.jitter_max = Duration{0};
  return options;
}

// Echo clients on nodes of their own; how many rounds each makes in 20 ms.
std::vector<uint64_t> echo_rounds(const ClusterOptions& options, size_t clients, uint32_t size,
                                  uint64_t& hash) {
  std::vector<EchoStats> stats(clients);  // outlive the cluster, whose end ends the clients
  Cluster cluster(options);
  cluster.node("server").start(echo_server(kPort));
  const env::Address server = cluster.node("server").address(kPort);
  for (size_t i = 0; i < clients; ++i) {
    cluster.node("client" + std::to_string(i)).start(echo_client(server, {.size = size}, stats[i]));
  }
  cluster.run_for(20_ms);
  hash = cluster.trace_hash();
  std::vector<uint64_t> rounds;
  rounds.reserve(stats.size());
  for (const EchoStats& one : stats) rounds.push_back(one.rounds);
  return rounds;
}

TEST(PacketNetwork, CarriesStreamsAndRepeats) {
  uint64_t first = 0;
  uint64_t again = 0;
  const auto rounds = echo_rounds(over(net::star(4)), 2, 4096, first);
  for (const uint64_t one : rounds) EXPECT_GT(one, 100U);
  EXPECT_EQ(echo_rounds(over(net::star(4)), 2, 4096, again), rounds);
  EXPECT_EQ(again, first);
}

TEST(PacketNetwork, ManySendersToOneShareItsLink) {
  uint64_t hash = 0;
  const uint64_t alone = echo_rounds(over(net::star(12)), 1, 65536, hash)[0];
  const auto together = echo_rounds(over(net::star(12)), 10, 65536, hash);
  uint64_t sum = 0;
  for (const uint64_t one : together) {
    EXPECT_GT(one, 0U);
    EXPECT_LT(one, alone);
    sum += one;
  }
  // 10 Gb/s into the server and out of it; a message has 64 KiB and its packets' headers.
  constexpr double kRoundsMax = 20e-3 * 10e9 / 8 / 65536;
  EXPECT_LT(static_cast<double>(sum), kRoundsMax);
  EXPECT_GT(static_cast<double>(sum), kRoundsMax * 0.5);
}

Task<void> receive_bytes(Env& env, size_t bytes, Time& arrived) {
  auto listener = env.listen(env::Address::ip4(0, 0, 0, 0, kPort));
  EXPECT_TRUE(listener.has_value());
  auto connection = co_await (*listener)->accept();
  EXPECT_TRUE(connection.has_value());
  const std::unique_ptr<env::Stream> stream = env.open(std::move(*connection));
  std::vector<std::byte> buffer(bytes);
  size_t got = 0;
  while (got < bytes) {
    const auto part = co_await stream->read(std::span(buffer).subspan(got));
    if (!part || *part == 0) break;
    got += *part;
  }
  arrived = env.now();
  EXPECT_EQ(got, bytes);
}

Task<void> send_bytes(Env& env, env::Address to, size_t bytes, Time& sent) {
  auto stream = co_await env::connect_stream(env, to, {});
  EXPECT_TRUE(stream.has_value());
  const std::vector<std::byte> data(bytes);
  sent = env.now();
  const auto written = co_await (*stream)->write(data);
  EXPECT_TRUE(written.has_value());
  EXPECT_TRUE((*stream)->finish().has_value());
}

TEST(PacketNetwork, OneTransferTakesWhatTheModelAloneSays) {
  const net::Topology topology = net::star(2);
  Cluster cluster(over(topology));
  Time sent;
  Time arrived;
  constexpr size_t kBytes = 50'000;
  cluster.node("receiver").start([&](Env& env) { return receive_bytes(env, kBytes, arrived); });
  const env::Address to = cluster.node("receiver").address(kPort);
  cluster.node("sender").start([&, to](Env& env) { return send_bytes(env, to, kBytes, sent); });
  cluster.run_for(50_ms);

  class Sink final : public net::FlowSink {
   public:
    void flow_done(const net::FlowDone& done) override { received = done.received; }
    net::Picos received = 0;
  } sink;
  net::Network alone(topology, {});
  alone.start({.source = 1, .destination = 0, .bytes = kBytes});
  alone.advance(net::kNever, sink);
  const Duration took = arrived - sent;
  EXPECT_GE(took.ns, sink.received / net::kNanosecond);
  EXPECT_LE(took.ns, sink.received / net::kNanosecond + 2);
}

TEST(PacketNetwork, SurvivesFaultsAndCrashes) {
  ClusterOptions options = over(net::star(4));
  options.network.faults = NetworkFaults::rough();
  EchoStats stats;
  Cluster cluster(options);
  cluster.node("server").start(echo_server(kPort));
  const env::Address server = cluster.node("server").address(kPort);
  cluster.node("client").start(echo_client(server, {.size = 20'000}, stats));
  for (int i = 0; i < 5; ++i) {
    cluster.run_for(30_ms);
    cluster.node("server").crash();
    cluster.node("server").restart();
  }
  cluster.run_for(5_s);
  EXPECT_GT(stats.rounds, 10U);
}

}  // namespace
}  // namespace cairn::sim
