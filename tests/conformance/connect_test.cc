// SPDX-License-Identifier: Apache-2.0
// Listening, accepting and connecting.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "env/address.h"
#include "env/call.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/task.h"
#include "task/when_all.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Address;
using env::Connection;
using env::Env;
using env::Listener;
using env::Stream;
using task::CancelSource;
using task::CancelToken;
using task::Deadline;
using task::Task;

WORLD_TEST_SUITE(Connecting);

WORLD_TEST(Connecting, ListenerTellsThePortItWasGiven) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  EXPECT_NE(listener->local().port, 0);
  EXPECT_EQ(listener->local().ip, scene.any_port().ip);
  co_return;
}

WORLD_TEST(Connecting, AddressInUseExists) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  const auto again = env.listen(listener->local());
  EXPECT_EQ(outcome(again), "exists");
  co_return;
}

WORLD_TEST(Connecting, AddressIsFreeAgainWhenItsListenerIsGone) {
  std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  const Address at = listener->local();
  // With a connection in the books too: that must not keep the address taken.
  Task<Result<Connection>> accepting = accept_one(*listener);
  auto client = co_await env::connect_stream(env, at);
  Result<Connection> accepted = co_await accepting;
  EXPECT_EQ(outcome(client), "ok");
  EXPECT_EQ(outcome(accepted), "ok");
  listener.reset();
  const auto again = env.listen(at);
  EXPECT_EQ(outcome(again), "ok");
}

WORLD_TEST(Connecting, ListeningAtAForeignAddressIsUnreachable) {
  const auto listener = env.listen(scene.foreign_address());
  EXPECT_EQ(outcome(listener), "unreachable");
  co_return;
}

WORLD_TEST(Connecting, ConnectToNobodyIsUnreachable) {
  Address nobody;
  {
    const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
    nobody = listener->local();
  }
  for (int i = 0; i < 10; ++i) {
    const Result<Connection> connection = co_await env.connect(nobody);
    EXPECT_EQ(outcome(connection), "unreachable");
  }
}

WORLD_TEST(Connecting, ConnectToASilentAddressEndsAtItsDeadline) {
  const Address silent = scene.silent_address();
  const Time start = env.now();
  Deadline deadline(env, start + 30_ms);
  const Result<Connection> connection = co_await env.connect(silent, deadline.token());
  EXPECT_EQ(outcome(connection), "timed_out");
  EXPECT_GE(env.now() - start, 30_ms);
}

WORLD_TEST(Connecting, ConnectWaitsForNoAccept) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  Result<Connection> connection = co_await env.connect(listener->local());
  EXPECT_EQ(outcome(connection), "ok") << "the backlog has room";
  const std::unique_ptr<Stream> a = env.open(must(std::move(connection)));
  const std::vector<std::byte> message = pattern(100, 1);
  const Result<void> written = co_await a->write(message);
  EXPECT_EQ(outcome(written), "ok");
  Result<Connection> accepted = co_await listener->accept();
  const std::unique_ptr<Stream> b = env.open(must(std::move(accepted)));
  std::vector<std::byte> arrived(message.size());
  const Result<void> read = co_await env::read_exactly(*b, arrived);
  EXPECT_EQ(outcome(read), "ok");
  EXPECT_EQ(arrived, message);
}

Task<uint64_t> ask(Env& env, Address server, uint64_t question) {
  auto connected_stream = co_await env::connect_stream(env, server);
  const std::unique_ptr<Stream> stream = must(std::move(connected_stream));
  std::vector<std::byte> bytes(sizeof(question));
  store(bytes, question);
  const Result<void> written = co_await stream->write(bytes);
  EXPECT_EQ(outcome(written), "ok");
  const Result<void> read = co_await env::read_exactly(*stream, bytes);
  EXPECT_EQ(outcome(read), "ok");
  co_return load<uint64_t>(bytes);
}

// Answers one question with the question plus one.
Task<void> answer(Env& env, Connection connection) {
  const std::unique_ptr<Stream> stream = env.open(std::move(connection));
  std::vector<std::byte> bytes(sizeof(uint64_t));
  const Result<void> read = co_await env::read_exactly(*stream, bytes);
  EXPECT_EQ(outcome(read), "ok");
  store(bytes, load<uint64_t>(bytes) + 1);
  const Result<void> written = co_await stream->write(bytes);
  EXPECT_EQ(outcome(written), "ok");
  const auto rest = co_await drain(*stream);
  EXPECT_EQ(outcome(rest), "ok");
}

// Accepts until cancelled; returns how many came.
Task<size_t> serve(Env& env, Listener& listener, CancelToken stop) {
  task::Gate gate;
  size_t count = 0;
  while (true) {
    Result<Connection> accepted = co_await listener.accept(stop);
    if (!accepted) {
      EXPECT_EQ(outcome(accepted), "cancelled");
      break;
    }
    ++count;
    gate.spawn(answer(env, std::move(*accepted)));
  }
  co_await gate.close();
  co_return count;
}

WORLD_TEST(Connecting, ManyAtOnceAreAllAccepted) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  CancelSource stop;
  Task<size_t> serving = serve(env, *listener, stop.token());
  std::vector<Task<uint64_t>> clients;
  for (uint64_t i = 0; i < 200; ++i) clients.push_back(ask(env, listener->local(), i));
  const std::vector<uint64_t> answers = co_await task::when_all(std::move(clients));
  stop.request();
  const size_t served = co_await serving;
  EXPECT_EQ(served, 200u);
  for (uint64_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], i + 1);
}

WORLD_TEST(Connecting, AcceptedHereOpenedThere) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  for (uint64_t i = 0; i < 50; ++i) {
    Task<uint64_t> asking = ask(env, listener->local(), i);
    Result<Connection> accepted = co_await listener->accept();
    Connection connection = must(std::move(accepted));
    const CoreId there((env.core().value() + 1) % env.core_count());
    co_await env::call_on(env, there, [&connection](Env& there_env) {
      return answer(there_env, std::move(connection));
    });
    const uint64_t answered = co_await asking;
    EXPECT_EQ(answered, i + 1);
  }
}

WORLD_TEST(Connecting, ConnectedHereOpenedThere) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  CancelSource stop;
  Task<size_t> serving = serve(env, *listener, stop.token());
  const Address server = listener->local();
  const CoreId there((env.core().value() + 1) % env.core_count());
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t answered = co_await env::call_on(
        env, there, [&server, i](Env& there_env) { return ask(there_env, server, i); });
    EXPECT_EQ(answered, i + 1);
  }
  stop.request();
  const size_t served = co_await serving;
  EXPECT_EQ(served, 50u);
}

WORLD_TEST(Connecting, ConnectionDroppedUnopenedEndsThePeer) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  for (int i = 0; i < 20; ++i) {
    auto client = co_await env::connect_stream(env, listener->local());
    const std::unique_ptr<Stream> stream = must(std::move(client));
    {
      const Result<Connection> dropped = co_await listener->accept();
      EXPECT_EQ(outcome(dropped), "ok");
    }
    const auto rest = co_await drain(*stream);
    EXPECT_TRUE(outcome(rest) == "ok" || outcome(rest) == "reset") << outcome(rest);
  }
}

WORLD_TEST(Connecting, DestroyedListenerEndsThoseItNeverAccepted) {
  std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  auto client = co_await env::connect_stream(env, listener->local());
  const std::unique_ptr<Stream> stream = must(std::move(client));
  listener.reset();
  const auto rest = co_await drain(*stream);
  EXPECT_TRUE(outcome(rest) == "ok" || outcome(rest) == "reset") << outcome(rest);
}

Task<size_t> serve_shared(Env& env, Address at, task::CancelToken stop, Address* bound) {
  const std::unique_ptr<Listener> listener = must(env.listen(at, {.share_port = true}));
  if (bound != nullptr) *bound = listener->local();
  const size_t served = co_await serve(env, *listener, stop);
  co_return served;
}

// The other core's half: it stops when told by a message, since tokens do not cross cores.
struct Remote {
  CancelSource stop;
  Address at;
};
Task<size_t> serve_remote(Env& there, Remote& remote) {
  const size_t served = co_await serve_shared(there, remote.at, remote.stop.token(), nullptr);
  co_return served;
}

WORLD_TEST(Connecting, SharedPortIsServedByBothCores) {
  CancelSource stop;
  Address at = scene.any_port();
  Task<size_t> here = serve_shared(env, at, stop.token(), &at);
  Remote remote;
  remote.at = at;
  const CoreId there((env.core().value() + 1) % env.core_count());
  Task<size_t> away = env::call_on(
      env, there, [&remote](Env& there_env) { return serve_remote(there_env, remote); });
  // A round trip, so that the other core listens too.
  co_await env::call_on(env, there, [](Env&) {});
  std::vector<Task<uint64_t>> clients;
  for (uint64_t i = 0; i < 64; ++i) clients.push_back(ask(env, at, i));
  const std::vector<uint64_t> answers = co_await task::when_all(std::move(clients));
  for (uint64_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], i + 1);
  stop.request();
  co_await env::call_on(env, there, [&remote](Env&) { remote.stop.request(); });
  const size_t served_here = co_await here;
  const size_t served_away = co_await away;
  EXPECT_EQ(served_here + served_away, 64u);
}

// One question over each family of addresses.
Task<void> ask_once_at(Env& env, Address at) {
  const std::unique_ptr<Listener> listener = must(env.listen(at));
  Task<uint64_t> asking = ask(env, listener->local(), 41);
  Result<Connection> accepted = co_await listener->accept();
  co_await answer(env, must(std::move(accepted)));
  const uint64_t answered = co_await asking;
  EXPECT_EQ(answered, 42u);
}

WORLD_TEST(Connecting, Ip6LoopbackCarriesBytes) {
  const std::optional<Address> at = scene.any_port_ip6();
  if (!at) {
    scene.skip("no IPv6 here");
    co_return;
  }
  co_await ask_once_at(env, *at);
}

WORLD_TEST(Connecting, LocalSocketsCarryBytes) {
  const std::optional<Address> at = scene.local_socket("plain");
  if (!at) {
    scene.skip("no local sockets here");
    co_return;
  }
  co_await ask_once_at(env, *at);
  co_await ask_once_at(env, *at);
}

WORLD_TEST(Connecting, LocalSocketInUseExists) {
  const std::optional<Address> at = scene.local_socket("used");
  if (!at) {
    scene.skip("no local sockets here");
    co_return;
  }
  const std::unique_ptr<Listener> listener = must(env.listen(*at));
  EXPECT_EQ(listener->local(), *at);
  const auto again = env.listen(*at);
  EXPECT_EQ(outcome(again), "exists");
}

WORLD_TEST(Connecting, LocalSocketOfNobodyIsUnreachable) {
  const std::optional<Address> at = scene.local_socket("nobody");
  if (!at) {
    scene.skip("no local sockets here");
    co_return;
  }
  const Result<Connection> missing = co_await env.connect(*at);
  EXPECT_EQ(outcome(missing), "unreachable") << "there is no such file";
  must(env.listen(*at));
  const Result<Connection> left_behind = co_await env.connect(*at);
  EXPECT_EQ(outcome(left_behind), "unreachable");
}

WORLD_TEST(Connecting, LocalSocketResetEndsBothSides) {
  const std::optional<Address> at = scene.local_socket("reset");
  if (!at) {
    scene.skip("no local sockets here");
    co_return;
  }
  const Pair pair = co_await connected_at(env, *at);
  std::vector<std::byte> here(10);
  std::vector<std::byte> there(10);
  Task<Result<size_t>> reading = read_some(*pair.a, here);
  Task<Result<size_t>> peer_reading = read_some(*pair.b, there);
  co_await turn(env);
  pair.a->reset();
  const Result<size_t> read = co_await reading;
  EXPECT_EQ(outcome(read), "reset");
  const Result<size_t> peer_read = co_await peer_reading;
  EXPECT_TRUE(outcome(peer_read) == "reset" || must(peer_read) == 0);
  const Result<void> written = co_await pair.b->write(there);
  EXPECT_EQ(outcome(written), "reset");
}

WORLD_TEST(Connecting, LocalSocketsHoldUpAWriterAndHalfClose) {
  const std::optional<Address> at = scene.local_socket("flow");
  if (!at) {
    scene.skip("no local sockets here");
    co_return;
  }
  const Pair pair = co_await connected_at(env, *at, kSmallBuffers);
  const std::vector<std::byte> message = pattern(2 * kInFlightMax, 1);
  Task<Result<void>> writing = write_all(*pair.a, message);
  for (int i = 0; i < 50; ++i) co_await turn(env);
  EXPECT_FALSE(writing.is_done());
  Task<Result<std::vector<std::byte>>> reading = drain(*pair.b);
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(written), "ok");
  must(pair.a->finish());
  const auto arrived = co_await reading;
  EXPECT_EQ(must(arrived), message);
  const Result<void> back = co_await pair.b->write(Bytes(message).first(10));
  EXPECT_EQ(outcome(back), "ok");
}

}  // namespace
}  // namespace cairn::conformance
