// SPDX-License-Identifier: Apache-2.0
// Two ends and what can go wrong between them, in the simulator. That an encrypted stream keeps the
// contract of every Stream is tests/conformance' to show.
#include "tls/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "env/io.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "tls/alert.h"
#include "tls/client_hello.h"
#include "world/sim/cluster.h"

namespace cairn::tls {
namespace {

using task::Task;

Psk key_of(uint8_t fill, crypto::Hash hash = crypto::Hash::kSha256) {
  crypto::Digest key(crypto::digest_size(hash));
  std::ranges::fill(key.mutable_bytes(), std::byte{fill});
  return {.identity = "NVMe0R01 host subsystem", .hash = hash, .key = key};
}

// Knows one key, and answers when it likes.
class Keeper final : public PskKeeper {
 public:
  Keeper(env::Env& env, Result<Psk> known) : env_(env), known_(std::move(known)) {}

  Task<Result<Psk>> choose(std::vector<std::string> identities) override {
    asked = std::move(identities);
    const Result<void> slept = co_await task::sleep_for(env_, thinks);
    EXPECT_TRUE(slept.has_value());
    const bool is_offered = !known_ || std::ranges::find(asked, known_->identity) != asked.end();
    if (!is_offered) co_return fail(Errc::kDenied, "nobody of this name");
    co_return known_;
  }

  std::vector<std::string> asked;
  Duration thinks = 0_s;

 private:
  env::Env& env_;
  Result<Psk> known_;
};

// A client and a server on a node each; the bodies say what they do.
class TlsPair : public testing::Test {
 public:
  using Body = std::function<Task<void>(env::Env&, std::unique_ptr<env::Stream>)>;

  static constexpr uint16_t kPort = 4420;

  Task<void> serve(env::Env& env, env::Address at) {
    const auto listener = env.listen(at).value();
    Result<env::Connection> accepted = co_await listener->accept(env.stop_token());
    if (!accepted) co_return;
    co_await server(env, env.open(std::move(*accepted)));
    ++ended;
  }
  Task<void> connect(env::Env& env, env::Address to) {
    auto stream = co_await env::connect_stream(env, to);
    EXPECT_TRUE(stream.has_value());
    co_await client(env, std::move(*stream));
    ++ended;
  }
  void run() {
    sim::Cluster cluster(world);
    const env::Address at = cluster.node("server").address(kPort);
    cluster.node("server").start([this, at](env::Env& env) { return serve(env, at); });
    cluster.run_for(1_ms);
    cluster.node("client").start([this, at](env::Env& env) { return connect(env, at); });
    EXPECT_TRUE(cluster.run_until([this] { return ended == 2; }, 200_s)) << cluster.report();
    for (sim::Node* node : cluster.nodes()) node->stop();
    EXPECT_TRUE(cluster.run_until_idle(100_s));
    trace_hash = cluster.trace_hash();
  }

  // Shakes hands, does `then` and goes.
  using Then = std::function<Task<void>(env::Env&, TlsStream&)>;
  Task<void> as_server(env::Env& env, std::unique_ptr<env::Stream> inner, Result<Psk> key,
                       Then then) {
    Keeper keeper(env, std::move(key));
    keeper.thinks = server_thinks;
    task::Gate lingering;
    const Context context(Role::kServer);
    auto stream = std::make_unique<TlsStream>(env, std::move(inner), context, keeper, lingering);
    at_server = co_await stream->shake_hands(timeout);
    server_report = stream->report();
    offered = keeper.asked;
    if (at_server) identity = stream->identity();
    if (at_server && then) co_await then(env, *stream);
    stream.reset();
    co_await lingering.close();
  }
  Task<void> as_client(env::Env& env, std::unique_ptr<env::Stream> inner, Psk key, Then then) {
    task::Gate lingering;
    const Context context(Role::kClient);
    auto stream =
        std::make_unique<TlsStream>(env, std::move(inner), context, std::move(key), lingering);
    at_client = co_await stream->shake_hands(timeout);
    client_report = stream->report();
    if (at_client && then) co_await then(env, *stream);
    stream.reset();
    co_await lingering.close();
  }
  // Both ends with their keys.
  void run_with(Psk of_client, Result<Psk> of_server, Then client_does = {},
                Then server_does = {}) {
    client = [&](env::Env& env, std::unique_ptr<env::Stream> inner) {
      return as_client(env, std::move(inner), of_client, client_does);
    };
    server = [&](env::Env& env, std::unique_ptr<env::Stream> inner) {
      return as_server(env, std::move(inner), of_server, server_does);
    };
    run();
  }
  static std::string said(const Result<void>& outcome) {
    return outcome ? "ok" : outcome.error().what();
  }

  Body client;
  Body server;
  sim::ClusterOptions world;
  Duration timeout = kHandshakeTimeout;
  Duration server_thinks = 0_s;
  int ended = 0;
  uint64_t trace_hash = 0;
  Result<void> at_client = fail(Errc::kInvalid, "never");
  Result<void> at_server = fail(Errc::kInvalid, "never");
  HandshakeReport client_report;
  HandshakeReport server_report;
  std::vector<std::string> offered;
  std::string identity;
};

Task<void> echo_to_end(env::Env&, TlsStream& stream) {
  std::array<std::byte, 3000> bytes{};
  for (;;) {
    const Result<size_t> got = co_await stream.read(bytes);
    if (!got || *got == 0) break;
    const Result<void> written = co_await stream.write(Bytes(bytes).first(*got));
    if (!written) break;
  }
}

Task<void> ask_and_compare(env::Env&, TlsStream& stream) {
  std::vector<std::byte> sent(100'000);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 256);
  std::vector<std::byte> back(sent.size());
  auto [written, read] = co_await task::when_all(
      [](TlsStream& to, Bytes bytes) -> Task<Result<void>> {
        const Result<void> done = co_await to.write(bytes);
        co_return done;
      }(stream, sent),
      env::read_exactly(stream, back));
  EXPECT_TRUE(written.has_value() && read.has_value());
  EXPECT_EQ(back, sent);
}

TEST_F(TlsPair, WithTheSameKeyBothEndsTalk) {
  for (const crypto::Hash hash : {crypto::Hash::kSha256, crypto::Hash::kSha384}) {
    ended = 0;
    run_with(key_of(1, hash), key_of(1, hash), &ask_and_compare, &echo_to_end);
    EXPECT_EQ(said(at_client), "ok");
    EXPECT_EQ(said(at_server), "ok");
    EXPECT_EQ(identity, "NVMe0R01 host subsystem");
    EXPECT_EQ(client_report.cipher,
              hash == crypto::Hash::kSha256 ? "TLS_AES_128_GCM_SHA256" : "TLS_AES_256_GCM_SHA384");
    EXPECT_TRUE(client_report.heard_server_hello);
  }
}

TEST_F(TlsPair, AnotherKeyIsDeniedAtBothEnds) {
  run_with(key_of(1), key_of(2));
  ASSERT_FALSE(at_client);
  EXPECT_EQ(at_client.error(), Errc::kDenied);
  EXPECT_EQ(client_report.alert, static_cast<uint8_t>(Alert::kIllegalParameter));
  EXPECT_EQ(said(at_server), "the peer has another TLS key");
}

TEST_F(TlsPair, AnUnknownIdentityIsDeniedByName) {
  Psk other = key_of(1);
  other.identity = "NVMe0R01 other subsystem";
  run_with(key_of(1), other);
  EXPECT_EQ(said(at_client), "the peer sent the TLS alert unknown_psk_identity");
  EXPECT_EQ(said(at_server), "nobody of this name");
  EXPECT_EQ(offered, std::vector<std::string>{"NVMe0R01 host subsystem"});
}

TEST_F(TlsPair, AKeeperThatHasNoTimeIsNoDenial) {
  run_with(key_of(1), fail(Errc::kLimit, "too many are waiting"));
  ASSERT_FALSE(at_client);
  EXPECT_EQ(at_client.error(), Errc::kReset) << "another attempt may succeed";
  EXPECT_EQ(said(at_server), "too many are waiting");
}

TEST_F(TlsPair, AKeyOfAnotherHashIsDenied) {
  run_with(key_of(1, crypto::Hash::kSha256), key_of(1, crypto::Hash::kSha384));
  EXPECT_FALSE(at_client);
  EXPECT_FALSE(at_server);
}

TEST_F(TlsPair, APeerThatIsSilentRunsOutOfTime) {
  client = [&](env::Env& env, std::unique_ptr<env::Stream> inner) {
    return as_client(env, std::move(inner), key_of(1), {});
  };
  server = [](env::Env& env, std::unique_ptr<env::Stream> inner) -> Task<void> {
    const Result<void> slept = co_await task::sleep_for(env, 60_s);
    EXPECT_TRUE(slept && inner != nullptr);
  };
  run();
  ASSERT_FALSE(at_client);
  EXPECT_EQ(at_client.error(), Errc::kTimedOut);
  EXPECT_EQ(said(at_client), "the TLS handshake took too long");
  EXPECT_FALSE(client_report.heard_anything);
}

// Something else than TLS, both ways; what came first is kept for whoever knows better.
Task<void> speak_http(env::Env&, std::unique_ptr<env::Stream> inner) {
  const Result<void> written = co_await inner->write(as_bytes("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(written.has_value());
  std::vector<std::byte> heard(7);
  const Result<void> read = co_await env::read_exactly(*inner, heard);
  EXPECT_TRUE(read.has_value());
  EXPECT_EQ(heard[0], std::byte{21}) << "an alert, which says it to those who know TLS";
}

TEST_F(TlsPair, AClientThatDoesNotSpeakTlsIsNamed) {
  client = &speak_http;
  server = [&](env::Env& env, std::unique_ptr<env::Stream> inner) {
    return as_server(env, std::move(inner), key_of(1), {});
  };
  run();
  EXPECT_EQ(said(at_server), "the peer does not speak TLS");
  EXPECT_EQ(as_text(Bytes(server_report.first).first(4)), "GET ");
}

Task<void> speak_smtp(env::Env&, std::unique_ptr<env::Stream> inner) {
  std::array<std::byte, 1000> hello{};
  const Result<size_t> got = co_await inner->read(hello);
  const Result<void> written = co_await inner->write(as_bytes("220 mail\r\n"));
  EXPECT_TRUE(got && written);
  const Result<size_t> end = co_await inner->read(hello);
  EXPECT_TRUE(end.has_value() || end.error() == Errc::kReset);
}

TEST_F(TlsPair, AServerThatDoesNotSpeakTlsIsNamed) {
  client = [&](env::Env& env, std::unique_ptr<env::Stream> inner) {
    return as_client(env, std::move(inner), key_of(1), {});
  };
  server = &speak_smtp;
  run();
  EXPECT_EQ(said(at_client), "the peer does not speak TLS");
}

// --- with one end that does as it likes ---------------------------------------------------------

// Hands over what an engine wants to say.
Task<void> flush(Engine& engine, env::Stream& inner) {
  const std::vector<std::byte> out(engine.output().begin(), engine.output().end());
  engine.output_left(out.size());
  const Result<void> written = co_await inner.write(out);
  EXPECT_TRUE(written.has_value());
}

Task<void> shake_hands(Engine& engine, env::Stream& inner) {
  for (;;) {
    const Engine::Step step = engine.shake_hands();
    if (step == Engine::Step::kWantsChoice) {
      engine.choose(key_of(1));
      continue;
    }
    co_await flush(engine, inner);
    if (step != Engine::Step::kWantsInput) co_return;
    const Result<size_t> got = co_await inner.read(engine.input_room());
    EXPECT_TRUE(got.has_value());
    engine.input_came(got.value_or(0));
  }
}

// Reads once and again, which ends the same way; then a write fails too.
Task<void> expect_reset(env::Env&, TlsStream& stream, std::string why) {
  std::array<std::byte, 10> into{};
  for (int i = 0; i < 2; ++i) {
    const Result<size_t> read = co_await stream.read(into);
    EXPECT_FALSE(read.has_value());
    if (read) co_return;
    EXPECT_EQ(read.error(), Errc::kReset);
    EXPECT_NE(std::string(read.error().what()).find(why), std::string::npos) << read.error().what();
  }
}

Task<void> end_without_a_word(env::Env&, std::unique_ptr<env::Stream> inner) {
  const Context context(Role::kServer);
  Engine engine(context);
  co_await shake_hands(engine, *inner);
}

// A middle man who ends the connection cannot make it look like the peer's own end.
TEST_F(TlsPair, AnEndWithoutCloseNotifyIsAReset) {
  client = [&](env::Env& env, std::unique_ptr<env::Stream> inner) {
    return as_client(env, std::move(inner), key_of(1), [](env::Env& there, TlsStream& stream) {
      return expect_reset(there, stream, "close_notify");
    });
  };
  server = &end_without_a_word;
  run();
  EXPECT_EQ(said(at_client), "ok");
}

Task<void> change_a_record(env::Env&, std::unique_ptr<env::Stream> inner) {
  const Context context(Role::kClient);
  Engine engine(context, key_of(1));
  co_await shake_hands(engine, *inner);
  EXPECT_TRUE(engine.write(as_bytes("hello")));
  std::vector<std::byte> record(engine.output().begin(), engine.output().end());
  record.back() ^= std::byte{1};
  const Result<void> written = co_await inner->write(record);
  EXPECT_TRUE(written.has_value());
  const Result<size_t> got = co_await inner->read(engine.input_room());
  engine.input_came(got.value_or(0));
  std::array<std::byte, 8> into{};
  size_t count = 0;
  EXPECT_EQ(engine.read(into, count), Engine::Step::kFailed);
  EXPECT_EQ(std::string(engine.failure()->what()), "the peer sent the TLS alert bad_record_mac");
}

TEST_F(TlsPair, ChangedBytesEndInAResetAtBothEnds) {
  client = &change_a_record;
  server = [&](env::Env& env, std::unique_ptr<env::Stream> inner) {
    return as_server(env, std::move(inner), key_of(1), [](env::Env& there, TlsStream& stream) {
      return expect_reset(there, stream, "changed on its way");
    });
  };
  run();
}

class TlsPairSeed : public TlsPair, public testing::WithParamInterface<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, TlsPairSeed, testing::Range<uint64_t>(1, 21));

// Bytes that come one by one and late change nothing.
TEST_P(TlsPairSeed, TalksThroughPiecesOfAnySize) {
  world.seed = GetParam();
  world.network.faults.segment = 1.0;
  world.network.faults.delay = 0.2;
  world.network.faults.delay_max = 1_ms;
  server_thinks = Duration{static_cast<int64_t>(GetParam() * 100'000)};
  run_with(key_of(1), key_of(1), &ask_and_compare, &echo_to_end);
  EXPECT_EQ(said(at_client), "ok");
  EXPECT_EQ(said(at_server), "ok");
}

// Connections that break anywhere end in an error, never in wrong bytes; and a run repeats although
// the bytes on the wire are never the same.
TEST_P(TlsPairSeed, BreaksCleanlyAndRepeats) {
  uint64_t first = 0;
  for (int i = 0; i < 2; ++i) {
    ended = 0;
    world.seed = GetParam();
    world.network.faults = sim::NetworkFaults::rough();
    world.network.faults.reset = 0.02;
    const Then ask = [](env::Env&, TlsStream& stream) -> Task<void> {
      std::vector<std::byte> bytes(20'000, std::byte{0x5a});
      for (int round = 0; round < 50; ++round) {
        const Result<void> written = co_await stream.write(bytes);
        if (!written) co_return;
        std::vector<std::byte> back(bytes.size());
        const Result<void> read = co_await env::read_exactly(stream, back);
        if (!read) co_return;
        EXPECT_EQ(back, bytes);
      }
    };
    run_with(key_of(1), key_of(1), ask, &echo_to_end);
    if (i == 0) first = trace_hash;
  }
  EXPECT_EQ(trace_hash, first);
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

TEST(ClientHello, NamesItsKeysInOrder) {
  const auto two = offered_identities(
      bytes_of({0, 15, 0, 1, 'a', 0, 0, 0, 0, 0, 2, 'b', 'c', 1, 2, 3, 4, /* binders */ 0, 0}));
  ASSERT_TRUE(two);
  EXPECT_EQ(*two, (std::vector<std::string>{"a", "bc"}));
  EXPECT_TRUE(offered_identities(bytes_of({0, 0}))->empty());
}

TEST(ClientHello, NamesItsVersions) {
  EXPECT_TRUE(offers_tls13(bytes_of({4, 3, 3, 3, 4})));
  EXPECT_FALSE(offers_tls13(bytes_of({2, 3, 3, 3, 4})));
  EXPECT_FALSE(offers_tls13(bytes_of({4, 3, 3, 3})));
  EXPECT_FALSE(offers_tls13(bytes_of({255, 3})));
  EXPECT_FALSE(offers_tls13({}));
}

TEST(ClientHello, ListsThatBreakOffAreRefused) {
  for (const auto& bytes : {bytes_of({}), bytes_of({0}), bytes_of({0, 1}), bytes_of({0, 1, 0}),
                            bytes_of({0, 3, 0, 9, 'a'}), bytes_of({0, 5, 0, 1, 'a', 0, 0})}) {
    EXPECT_FALSE(offered_identities(bytes));
  }
}

}  // namespace
}  // namespace cairn::tls
