// SPDX-License-Identifier: Apache-2.0
// Listening, connecting, and links that fail.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"
#include "world/sim/stream_testing.h"
#include "world/sim/testing.h"

namespace cairn::sim {
namespace {

using env::Env;
using env::Stream;
using task::Task;

struct Attempt {
  bool is_over = false;
  bool has_connected = false;
  Errc code{};
  int64_t took_ns = 0;
};

Task<void> try_connect(Env& env, env::Address to, Attempt& attempt) {
  const Time start = env.now();
  const Result<env::Connection> connection = co_await env.connect(to, env.stop_token());
  attempt.is_over = true;
  attempt.has_connected = connection.has_value();
  if (!connection) attempt.code = connection.error().code();
  attempt.took_ns = (env.now() - start).ns;
}

class ConnectTest : public testing::Test {
 protected:
  const Attempt& connect(const env::Address& to) {
    attempt_ = {};
    cluster_.node("client").start([to, this](Env& env) { return try_connect(env, to, attempt_); });
    cluster_.run_until([this] { return attempt_.is_over; }, 1000_s);
    cluster_.run_for(1_us);
    return attempt_;
  }
  Attempt attempt_;
  Cluster cluster_;
};

TEST_F(ConnectTest, NobodyListensIsRefusedInOneRoundTrip) {
  const Attempt& attempt = connect(cluster_.node("server").address(7));
  EXPECT_EQ(attempt.code, Errc::kUnreachable);
  EXPECT_LT(attempt.took_ns, 100'000);
}

TEST_F(ConnectTest, NoSuchMachineIsUnreachable) {
  EXPECT_EQ(connect(env::Address::ip4(192, 168, 0, 1, 7)).code, Errc::kUnreachable);
  EXPECT_EQ(connect(env::Address::ip4(10, 0, 0, 99, 7)).code, Errc::kUnreachable);
}

TEST_F(ConnectTest, AMachineWithoutPowerIsSilentUntilTheTimeout) {
  cluster_.node("server").start(echo_server(7));
  cluster_.run_for(1_ms);
  cluster_.node("server").crash();
  const Attempt& attempt = connect(cluster_.node("server").address(7));
  EXPECT_EQ(attempt.code, Errc::kTimedOut);
  EXPECT_EQ(attempt.took_ns, cluster_.options().network.connect_timeout.ns);
}

TEST_F(ConnectTest, AKilledProcessIsRefused) {
  cluster_.node("server").start(echo_server(7));
  cluster_.run_for(1_ms);
  EXPECT_TRUE(connect(cluster_.node("server").address(7)).has_connected);
  cluster_.node("server").kill();
  EXPECT_EQ(connect(cluster_.node("server").address(7)).code, Errc::kUnreachable);
}

TEST_F(ConnectTest, GetsThroughWhenThePartitionHeals) {
  cluster_.node("server").start(echo_server(7));
  cluster_.run_for(1_ms);
  for (const bool answer_only : {false, true}) {
    if (answer_only) {
      cluster_.partition_one_way("server", "client");
    } else {
      cluster_.partition("client", "server");
    }
    cluster_.after(2500_ms, [this] { cluster_.heal(); });
    const Attempt& attempt = connect(cluster_.node("server").address(7));
    EXPECT_TRUE(attempt.has_connected);
    EXPECT_GT(attempt.took_ns, 2'500'000'000);
    EXPECT_LT(attempt.took_ns, 6'000'000'000);
  }
}

Task<void> connect_and_write(Env& env, env::Address to, Errc& code) {
  co_await pause(env, 1_us);
  auto stream = co_await env::connect_stream(env, to);
  EXPECT_TRUE(stream.has_value());
  if (!stream) co_return;
  std::byte room[1];
  const Result<size_t> got = co_await (*stream)->read(room, env.stop_token());
  if (!got) code = got.error().code();
}

TEST(Connect, AHandshakeDoesNotSurviveTheServersDeath) {
  Errc code{};
  Cluster cluster;
  cluster.node("server").start(echo_server(7));
  const env::Address at = cluster.node("server").address(7);
  cluster.node("client").start([&](Env& env) { return connect_and_write(env, at, code); });
  // The answer is on its way back; the client's last word is not there yet.
  cluster.run_for(70_us);
  cluster.node("server").crash();
  cluster.node("server").restart();
  cluster.run_for(1_s);
  EXPECT_EQ(code, Errc::kReset);
}

Task<void> connect_cancelled(Env& env, env::Address to, Errc& code) {
  task::Deadline deadline(env, env.now() + 5_ms, env.stop_token());
  const Result<env::Connection> connection = co_await env.connect(to, deadline.token());
  EXPECT_FALSE(connection.has_value());
  code = connection.error().code();
}

TEST(Connect, TakesADeadline) {
  Errc code{};
  Cluster cluster;
  cluster.node("a").start(echo_server(7));
  cluster.partition("a", "b");
  const env::Address at = cluster.node("a").address(7);
  cluster.node("b").start([&](Env& env) { return connect_cancelled(env, at, code); });
  cluster.run_for(6_ms);
  EXPECT_EQ(code, Errc::kTimedOut);
  EXPECT_FALSE(cluster.node("b").is_running());
}

Task<void> listen_facts(Env& env, bool& done) {
  const env::Address any = env::Address::ip4(0, 0, 0, 0, 80);
  const auto first = env.listen(any);
  EXPECT_TRUE(first.has_value());
  EXPECT_TRUE(env.listen(any).error() == Errc::kExists);
  EXPECT_TRUE(env.listen(env::Address::loopback(80)).error() == Errc::kExists);
  EXPECT_TRUE(env.listen(env::Address::ip4(10, 0, 0, 2, 81)).error() == Errc::kUnreachable);
  const auto chosen = env.listen(env::Address::loopback(0));
  EXPECT_TRUE(chosen.has_value() && (*chosen)->local().port != 0);
  const env::ListenOptions shared{.share_port = true};
  const auto one = env.listen(env::Address::loopback(90), shared);
  const auto two = env.listen(env::Address::loopback(90), shared);
  EXPECT_TRUE(one.has_value() && two.has_value());
  EXPECT_FALSE(env.listen(env::Address::loopback(90)).has_value());
  const auto path = env::Address::parse("unix:/run/x.sock");
  const auto local = env.listen(*path);
  EXPECT_TRUE(local.has_value());
  EXPECT_TRUE(env.listen(*path).error() == Errc::kExists);
  const Result<env::Connection> connection = co_await env.connect(*path);
  EXPECT_TRUE(connection.has_value());
  done = true;
}

TEST(Listen, AddressesAreTakenSharedOrChosen) {
  bool done = false;
  Cluster cluster;
  cluster.node("a").start([&](Env& env) { return listen_facts(env, done); });
  cluster.node("b");
  EXPECT_TRUE(cluster.run_until_idle(1_s));
  EXPECT_TRUE(done);
}

Task<void> never_accept(Env& env) {
  const auto listener = env.listen(env::Address::ip4(0, 0, 0, 0, 7), {.backlog = 2});
  co_await pause(env, 100_s);
}

TEST_F(ConnectTest, AFullBacklogTakesNobodyIn) {
  cluster_.node("server").start(never_accept);
  cluster_.run_for(1_ms);
  std::vector<Attempt> attempts(4);
  const env::Address at = cluster_.node("server").address(7);
  for (int i = 0; i < 4; ++i) {
    cluster_.node("c" + std::to_string(i)).start([at, i, &attempts](Env& env) {
      return try_connect(env, at, attempts[i]);
    });
    cluster_.run_for(1_ms);
  }
  cluster_.run_for(60_s);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(attempts[i].has_connected, i < 2) << i;
  EXPECT_EQ(attempts[3].code, Errc::kTimedOut);
}

// One writer, one reader; what they saw and when.
struct OneWay {
  uint64_t received = 0;
  Time last_received;
  bool reader_over = false;
  bool writer_over = false;
  Errc reader_code{};
  Errc writer_code{};
};

Task<void> read_all(Env& env, Stream& stream, OneWay& log) {
  std::vector<std::byte> room(4096);
  while (true) {
    const Result<size_t> got = co_await stream.read(room, env.stop_token());
    if (!got || *got == 0) {
      if (!got) log.reader_code = got.error().code();
      break;
    }
    log.received += *got;
    log.last_received = env.now();
  }
  log.reader_over = true;
}
Task<void> write_every_ms(Env& env, Stream& stream, OneWay& log) {
  const std::vector<std::byte> part(100);
  while (true) {
    const Result<void> written = co_await stream.write(part, env.stop_token());
    if (!written) {
      log.writer_code = written.error().code();
      break;
    }
    const Result<void> slept = co_await task::sleep_for(env, 1_ms, env.stop_token());
    if (!slept) break;
  }
  log.writer_over = true;
}

class LinkTest : public StreamTest {
 protected:
  Cluster& running() {
    cluster_ = std::make_unique<Cluster>(cluster_options_);
    start(*cluster_, log_, &read_all, &write_every_ms);
    cluster_->run_for(100_ms);
    EXPECT_GT(log_.received, 9000u);
    return *cluster_;
  }
  OneWay log_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(LinkTest, PartitionHoldsBytesAndHealingDeliversThemAll) {
  Cluster& cluster = running();
  cluster.partition("server", "client");
  const uint64_t before = log_.received;
  cluster.run_for(2_s);
  EXPECT_EQ(log_.received, before);
  cluster.heal();
  cluster.run_for(100_ms);
  EXPECT_GE(log_.received, before + 2000 * 100) << "nothing was lost";
  EXPECT_FALSE(log_.writer_over);
}

TEST_F(LinkTest, OneWayPartitionStopsOneDirection) {
  Cluster& cluster = running();
  cluster.partition_one_way("server", "client");
  const uint64_t before = log_.received;
  cluster.run_for(1_s);
  EXPECT_GE(log_.received, before + 900 * 100) << "client to server still works";
  cluster.partition_one_way("client", "server");
  const uint64_t later = log_.received;
  cluster.run_for(1_s);
  EXPECT_EQ(log_.received, later);
}

TEST_F(LinkTest, WithoutTheWayBackTheWindowClosesAndTheWriterGivesUp) {
  options_.receive_buffer_size = 10'000;
  options_.send_buffer_size = 10'000;
  Cluster& cluster = running();
  cluster.partition_one_way("server", "client");
  cluster.run_for(60_s);
  EXPECT_EQ(log_.writer_code, Errc::kTimedOut);
}

TEST_F(LinkTest, SenderWhoseBytesAreHeldTooLongTimesOutAndTheReaderHearsNothing) {
  Cluster& cluster = running();
  cluster.partition("server", "client");
  cluster.run_for(cluster.options().network.held_limit + 2_s);
  EXPECT_EQ(log_.writer_code, Errc::kTimedOut);
  EXPECT_TRUE(log_.writer_over);
  EXPECT_FALSE(log_.reader_over) << "nobody can tell it";
}

TEST_F(LinkTest, ClogDelaysAndLosesNothing) {
  Cluster& cluster = running();
  cluster.clog("client", "server", 500_ms);
  const uint64_t before = log_.received;
  cluster.run_for(499_ms);
  EXPECT_EQ(log_.received, before);
  cluster.run_for(10_ms);
  EXPECT_GE(log_.received, before + 490 * 100);
}

TEST_F(LinkTest, HealingEndsAClogAtOnce) {
  Cluster& cluster = running();
  cluster.clog("client", "server", 10_s);
  cluster.run_for(500_ms);
  const uint64_t before = log_.received;
  cluster.heal();
  cluster.run_for(60_ms);
  EXPECT_GE(log_.received, before + 490 * 100);
}

TEST_F(LinkTest, ResetStreamsEndsBothSides) {
  Cluster& cluster = running();
  cluster.reset_streams("server", "client");
  cluster.run_for(10_ms);
  EXPECT_EQ(log_.writer_code, Errc::kReset);
  EXPECT_EQ(log_.reader_code, Errc::kReset);
}

TEST_F(LinkTest, PowerLossIsSilentUntilTheMachineIsBackAndThenResets) {
  Cluster& cluster = running();
  cluster.node("server").crash();
  cluster.run_for(5_s);
  EXPECT_FALSE(log_.writer_over);
  cluster.node("server").restart();
  cluster.run_for(1_s);
  EXPECT_EQ(log_.writer_code, Errc::kReset);
}

TEST_F(LinkTest, PowerLossForLongerThanTheConnectTimeoutTimesOut) {
  Cluster& cluster = running();
  cluster.node("server").crash();
  cluster.run_for(cluster.options().network.held_limit + 1_s);
  EXPECT_EQ(log_.writer_code, Errc::kTimedOut);
}

TEST_F(LinkTest, KilledWriterEndsTheStreamOrResetsIt) {
  int ends = 0;
  int resets = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    log_ = {};
    cluster_options_.seed = seed;
    Cluster& cluster = running();
    cluster.node("client").kill();
    cluster.run_for(10_ms);
    EXPECT_TRUE(log_.reader_over);
    ++(log_.reader_code == Errc::kReset ? resets : ends);
  }
  EXPECT_GT(ends, 0);
  EXPECT_GT(resets, 0);
}

TEST_F(LinkTest, KilledReaderResetsTheWriterAtOnce) {
  Cluster& cluster = running();
  cluster.node("server").kill();
  cluster.run_for(10_ms);
  EXPECT_EQ(log_.writer_code, Errc::kReset);
}

}  // namespace
}  // namespace cairn::sim
