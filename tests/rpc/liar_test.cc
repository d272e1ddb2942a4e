// SPDX-License-Identifier: Apache-2.0
// A client and a server that lies: it is found out, and nobody waits for it past the deadline.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "env/io.h"
#include "rpc/link.h"
#include "rpc/test_service.h"

namespace cairn::rpc_tests {
namespace {

using rpc::Frame;
using rpc::FrameKind;
using rpc::Link;
using rpc::Welcome;

// What it says to a frame that is no greeting.
using Lie = std::function<void(Link&, const Frame&)>;

const Welcome kWelcome{.service_version = {.major = 3},
                       .calls_max = 8,
                       .subscriptions_max = 8,
                       .call_bytes_max = 1 << 20,
                       .message_max = 1 << 20};

class LyingServer {
 public:
  explicit LyingServer(Lie on_frame) : lie(std::move(on_frame)) {
    cluster.node("server").start([this](Env& env) { return serve(env); });
    cluster.run_for(1_ms);
  }
  ~LyingServer() {
    cluster.node("server").stop();
    EXPECT_TRUE(cluster.run_until_idle(100_s)) << cluster.report();
  }

  using Errand = std::function<Task<void>(rpc::Client&)>;
  void run_client(const Errand& errand) {
    sim::Node& node = cluster.node("client");
    const Time begin = cluster.now();
    node.start([this, &errand](Env& env) { return use(env, errand); });
    EXPECT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 100_s)) << cluster.report();
    took = cluster.now() - begin;
  }

  sim::Cluster cluster;
  Lie lie;
  std::string greeting = rpc::encode(kWelcome);
  size_t connections = 0;
  size_t open_connections = 0;
  size_t open_max = 0;
  Duration took;

 private:
  Task<void> serve(Env& env) {
    auto listener = env.listen(cluster.node("server").address(4440));
    task::Gate gate;
    while (listener) {
      Result<env::Connection> connection = co_await (*listener)->accept(env.stop_token());
      if (!connection) break;
      ++connections;
      gate.spawn(serve_one(env, env.open(std::move(*connection))));
    }
    co_await gate.close();
  }
  Task<void> serve_one(Env& env, std::unique_ptr<env::Stream> stream) {
    Link link(env, std::move(stream), {});
    open_max = std::max(open_max, ++open_connections);
    [[maybe_unused]] const Result<Frame> hello = co_await link.receive_greeting(env.stop_token());
    link.set_body_max(1 << 20);
    link.send({.kind = FrameKind::kWelcome}, greeting);
    for (bool goes_on = true; goes_on;) {
      const Result<Frame> frame = co_await link.receive();
      goes_on = frame.has_value();
      if (goes_on) lie(link, *frame);
    }
    co_await link.close();
    --open_connections;
  }
  Task<void> use(Env& env, Errand errand) {
    rpc::Client client(env, test_options(cluster.node("server").address(4440)));
    co_await errand(client);
    co_await client.close();
  }
};

Task<void> call_for(rpc::Client& client, rpc::CallOptions options, Result<Reply>& reply) {
  reply = co_await client.call({.method = TestMethods::kEcho, .body = "x"}, options, {});
}

Result<Reply> call(LyingServer& server, rpc::CallOptions options = within(2_s)) {
  Result<Reply> reply = fail(Errc::kInvalid, "");
  server.run_client([&](rpc::Client& client) { return call_for(client, options, reply); });
  return reply;
}

void reply_to(Link& link, const Frame& frame, uint64_t id) {
  link.send({.kind = FrameKind::kReply, .id = id}, frame.body);
}

TEST(RpcLiar, AnswersAreThoseThatWereAsked) {
  LyingServer server(
      [](Link& link, const Frame& frame) { reply_to(link, frame, frame.head.id + 1); });
  const Result<Reply> reply = call(server);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error(), Errc::kCorrupt) << reply.error().text();
}

Task<void> call_twice(rpc::Client& client, Result<Reply>& one, Result<Reply>& two) {
  co_await call_for(client, within(2_s), one);
  co_await call_for(client, within(2_s), two);
}

TEST(RpcLiar, SecondReplyEndsItsConnectionAlone) {
  LyingServer server([](Link& link, const Frame& frame) {
    reply_to(link, frame, frame.head.id);
    reply_to(link, frame, frame.head.id);
  });
  Result<Reply> one = fail(Errc::kInvalid, "");
  Result<Reply> two = fail(Errc::kInvalid, "");
  server.run_client([&](rpc::Client& client) { return call_twice(client, one, two); });
  EXPECT_TRUE(one);
  EXPECT_TRUE(two) << "over another connection";
  EXPECT_EQ(server.connections, 2u);
}

TEST(RpcLiar, HugeLengthIsNotBelieved) {
  LyingServer server([](Link& link, const Frame& frame) {
    link.send({.kind = FrameKind::kReply, .id = frame.head.id}, std::string(5_MiB, 'x'));
  });
  const Result<Reply> reply = call(server);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error(), Errc::kCorrupt) << reply.error().text();
}

TEST(RpcLiar, ClientsWordsAreNotAServers) {
  LyingServer server([](Link& link, const Frame& frame) {
    link.send({.kind = FrameKind::kCancel, .id = frame.head.id});
  });
  const Result<Reply> reply = call(server);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error(), Errc::kCorrupt) << reply.error().text();
}

TEST(RpcLiar, SilenceEndsAtTheDeadline) {
  LyingServer server([](Link&, const Frame&) {});
  const Result<Reply> reply = call(server);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error(), Errc::kTimedOut);
  EXPECT_LT(server.took, 2100_ms);
}

TEST(RpcLiar, OneThatMayBeRepeatedIsTriedAgainElsewhere) {
  size_t asked = 0;
  LyingServer server([&](Link& link, const Frame& frame) {
    if (frame.head.kind == FrameKind::kCall && ++asked > 1) reply_to(link, frame, frame.head.id);
  });
  const Result<Reply> reply = call(server, {.repeatable = true});
  EXPECT_TRUE(reply);
  EXPECT_EQ(server.connections, 2u) << "the first did not answer in time";
  EXPECT_LT(server.took, 4_s);
}

Task<void> call_again_and_again(rpc::Client& client, size_t& failed) {
  for (int i = 0; i < 10; ++i) {
    const Result<Reply> reply =
        co_await client.call({.method = TestMethods::kEcho}, {.repeatable = true}, {});
    failed += reply ? 0 : 1;
  }
}

// It answers pings, but no call: those who leave it leave no connection behind.
TEST(RpcLiar, OneThatNeverAnswersCollectsNoConnections) {
  LyingServer server([](Link&, const Frame&) {});
  size_t failed = 0;
  server.run_client([&](rpc::Client& client) { return call_again_and_again(client, failed); });
  EXPECT_EQ(failed, 10u);
  EXPECT_GT(server.connections, 20u);
  EXPECT_LE(server.open_max, 2u);
}

TEST(RpcLiar, OddGreetingsAreRefused) {
  for (const std::string& greeting :
       {std::string("odd"), rpc::encode(Welcome{}),
        rpc::encode(Welcome{.protocol = {.major = 2}, .calls_max = 1, .call_bytes_max = 1})}) {
    LyingServer server([](Link&, const Frame&) {});
    server.greeting = greeting;
    const Result<Reply> reply = call(server);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error(), Errc::kCorrupt) << reply.error().text();
  }
}

Task<void> take_pushes(rpc::Client& client, size_t& pushes, std::optional<Error>& end) {
  auto subscription = co_await client.subscribe({.method = TestMethods::kCount}, {});
  EXPECT_TRUE(subscription);
  // Enough time for the server to say everything.
  const Result<Reply> echoed =
      co_await client.call({.method = TestMethods::kEcho}, within(100_ms), {});
  EXPECT_FALSE(echoed);
  while (!end) {
    const Result<Reply> push = co_await (*subscription)->next({});
    if (push) ++pushes;
    if (!push) end = push.error();
  }
}

TEST(RpcLiar, PushesWithoutCreditAreNotKept) {
  LyingServer server([](Link& link, const Frame& frame) {
    if (frame.head.kind != FrameKind::kSubscribe) return;
    for (int i = 0; i < 1000; ++i) link.send({.kind = FrameKind::kPush, .id = frame.head.id});
  });
  size_t pushes = 0;
  std::optional<Error> end;
  server.run_client([&](rpc::Client& client) { return take_pushes(client, pushes, end); });
  EXPECT_EQ(pushes, 4u) << "the window";
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, Errc::kCorrupt);
}

Task<void> drop_subscription(rpc::Client& client, Result<Reply>& reply) {
  auto subscription = co_await client.subscribe({.method = TestMethods::kCount}, {});
  EXPECT_TRUE(subscription);
  subscription->reset();
  co_await call_for(client, within(500_ms), reply);
}

TEST(RpcLiar, PushesToNobodyAreCountedToo) {
  LyingServer server([](Link& link, const Frame& frame) {
    if (frame.head.kind != FrameKind::kCancel) return;
    for (int i = 0; i < 5; ++i) link.send({.kind = FrameKind::kPush, .id = frame.head.id});
  });
  Result<Reply> reply = fail(Errc::kInvalid, "");
  server.run_client([&](rpc::Client& client) { return drop_subscription(client, reply); });
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error(), Errc::kCorrupt) << reply.error().text();
}

}  // namespace
}  // namespace cairn::rpc_tests
