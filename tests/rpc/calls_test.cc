// SPDX-License-Identifier: Apache-2.0
// A client and a server that keep to the rules, and a network that does not always.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/test_service.h"
#include "task/when_all.h"

namespace cairn::rpc_tests {
namespace {

Task<void> echo(rpc::Client& client, std::string body, std::vector<std::string>& replies) {
  const Result<Reply> reply =
      co_await client.call({.method = TestMethods::kEcho, .body = std::move(body)}, {}, {});
  replies.push_back(reply && !reply->refusal ? reply->body : "failed");
}

Task<void> echo_many(Env&, rpc::Client& client, size_t count, std::vector<std::string>& replies) {
  std::vector<Task<void>> calls;
  for (size_t i = 0; i < count; ++i) calls.push_back(echo(client, std::to_string(i), replies));
  co_await task::when_all(std::move(calls));
}

TEST(RpcCalls, ManyAtOnceAreEachAnswered) {
  Stage stage;
  stage.start_server();
  std::vector<std::string> replies;
  stage.run_client(
      "a", [&](Env& env, rpc::Client& client) { return echo_many(env, client, 1000, replies); });
  ASSERT_EQ(replies.size(), 1000u);
  std::ranges::sort(replies);
  EXPECT_EQ(std::ranges::unique(replies).size(), 0u);
  EXPECT_EQ(std::ranges::count(replies, "failed"), 0);
}

// Says what it is called.
class NamedService final : public rpc::Service {
 public:
  std::string_view name() const override { return "other"; }
  rpc::Version version() const override { return {.major = 7}; }
  std::optional<rpc::Method> find(uint16_t) const override { return rpc::Method{.verb = "ask"}; }
  Task<Result<std::string>> call(uint16_t, std::string, rpc::Caller, task::CancelToken) override {
    co_return "other";
  }
};
Task<void> ask_by_name(Env& env, env::Address at, std::string name, uint16_t major,
                       std::vector<std::string>& replies) {
  rpc::Client client(
      env, {.servers = {at}, .session = {.service = name, .service_version = {.major = major}}});
  co_await echo(client, "test", replies);
  co_await client.close();
}
Task<void> ask_both(Env& env, env::Address at, std::vector<std::string>& replies) {
  TestService test(env);
  NamedService other;
  rpc::Server server(env, test);
  server.add(other);
  EXPECT_TRUE(server.listen(at));
  co_await ask_by_name(env, at, "other", 7, replies);
  co_await ask_by_name(env, at, "test", 3, replies);
  co_await ask_by_name(env, at, "other", 3, replies);
  co_await ask_by_name(env, at, "neither", 3, replies);
  co_await server.close();
}

TEST(RpcCalls, SeveralServicesAtOneAddressAreAskedForByName) {
  Stage stage;
  std::vector<std::string> replies;
  stage.run("server", [&](Env& env) { return ask_both(env, stage.at, replies); });
  EXPECT_EQ(replies, (std::vector<std::string>{"other", "test", "failed", "failed"}));
}

Task<void> sleep_in_order(rpc::Client& client, std::string ms, std::vector<std::string>& order) {
  const Result<Reply> reply =
      co_await client.call({.method = TestMethods::kSleep, .body = ms}, {}, {});
  order.push_back(reply ? reply->body : "failed");
}
Task<void> sleep_together(Env&, rpc::Client& client, std::vector<std::string>& order) {
  std::vector<Task<void>> calls;
  for (const char* ms : {"30", "10", "20"}) calls.push_back(sleep_in_order(client, ms, order));
  co_await task::when_all(std::move(calls));
}

TEST(RpcCalls, SlowOneKeepsNoneBehindIt) {
  Stage stage;
  stage.start_server();
  std::vector<std::string> order;
  stage.run_client(
      "a", [&](Env& env, rpc::Client& client) { return sleep_together(env, client, order); });
  EXPECT_EQ(order, (std::vector<std::string>{"10", "20", "30"}));
}

TEST(RpcCalls, NoMoreAreUnderWayThanTheServerAllows) {
  Stage stage;
  stage.server_options.visit.limits.calls_max = 2;
  stage.start_server();
  std::vector<std::string> order;
  stage.run_client(
      "a", [&](Env& env, rpc::Client& client) { return sleep_together(env, client, order); });
  EXPECT_EQ(order, (std::vector<std::string>{"10", "30", "20"}));
  EXPECT_EQ(stage.service->under_way_max, 2u);
  EXPECT_TRUE(stage.refused.empty());
}

struct Outcome {
  Result<Reply> reply = fail(Errc::kInvalid, "not tried");
  Duration took;
};

Task<void> call_into(Env& env, rpc::Client& client, MethodCall request, rpc::CallOptions options,
                     Outcome& outcome) {
  const Time begin = env.now();
  outcome.reply = co_await client.call(std::move(request), options, {});
  outcome.took = env.now() - begin;
}

Outcome call_once(Stage& stage, const char* node, const MethodCall& request,
                  rpc::CallOptions options = {}) {
  Outcome outcome;
  stage.run_client(node, [&](Env& env, rpc::Client& client) {
    return call_into(env, client, request, options, outcome);
  });
  return outcome;
}

TEST(RpcCalls, DeadlineEndsBothEnds) {
  Stage stage;
  stage.start_server();
  const Outcome outcome = call_once(stage, "a", {.method = TestMethods::kWait}, within(300_ms));
  ASSERT_FALSE(outcome.reply);
  EXPECT_EQ(outcome.reply.error(), Errc::kTimedOut);
  EXPECT_EQ(outcome.took, 300_ms);
  stage.cluster.run_for(10_ms);
  EXPECT_EQ(stage.service->under_way, 0u);
  ASSERT_EQ(stage.service->ends.size(), 1u);
}

// Nobody can tell it, so it has to know by itself.
TEST(RpcCalls, ServerKnowsTheDeadlineWithoutBeingTold) {
  Outcome outcome;
  Stage stage;
  stage.start_server();
  stage.cluster.node("a").start([&](Env& env) {
    return stage.use(env, [&](Env& there, rpc::Client& client) {
      return call_into(there, client, {.method = TestMethods::kWait}, within(300_ms), outcome);
    });
  });
  ASSERT_TRUE(stage.cluster.run_until([&] { return stage.service->under_way == 1; }, 1_s));
  stage.cluster.partition("a", "server");
  stage.cluster.run_for(301_ms);
  EXPECT_EQ(stage.service->ends, std::vector{Errc::kTimedOut});
  stage.cluster.heal();
}

Task<void> cancel_wait(Env& env, rpc::Client& client, Result<Reply>& first, Result<Reply>& second) {
  task::CancelSource cancel;
  Task<Result<Reply>> waiting = client.call({.method = TestMethods::kWait}, {}, cancel.token());
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, 50_ms);
  cancel.request();
  first = co_await waiting;
  second = co_await client.call({.method = TestMethods::kEcho, .body = "x"}, {}, {});
}

TEST(RpcCalls, CancelledOneIsCancelledThereToo) {
  Stage stage;
  stage.start_server();
  Result<Reply> first = fail(Errc::kInvalid, "");
  Result<Reply> second = fail(Errc::kInvalid, "");
  stage.run_client(
      "a", [&](Env& env, rpc::Client& client) { return cancel_wait(env, client, first, second); });
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error(), Errc::kCancelled);
  ASSERT_TRUE(second);
  EXPECT_EQ(stage.service->ends, std::vector{Errc::kCancelled});
}

// The reply to the first comes while the second is under way, on the same connection.
Task<void> answer_late(Env&, rpc::Client& client, Result<Reply>& late, Result<Reply>& next) {
  late = co_await client.call({.method = TestMethods::kSleep, .body = "500"}, within(100_ms), {});
  next = co_await client.call({.method = TestMethods::kSleep, .body = "700"}, {}, {});
}

TEST(RpcCalls, ReplyAfterItsDeadlineHarmsNobody) {
  Stage stage;
  stage.start_server();
  Result<Reply> late = fail(Errc::kInvalid, "");
  Result<Reply> next = fail(Errc::kInvalid, "");
  stage.run_client(
      "a", [&](Env& env, rpc::Client& client) { return answer_late(env, client, late, next); });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error(), Errc::kTimedOut);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->body, "700");
}

TEST(RpcCalls, SizesAreKept) {
  Stage stage;
  stage.start_server();
  const Outcome large = call_once(stage, "a", {.method = TestMethods::kSize, .body = "4194304"});
  ASSERT_TRUE(large.reply);
  EXPECT_EQ(large.reply->body.size(), 4_MiB);
  const Outcome larger = call_once(stage, "b", {.method = TestMethods::kSize, .body = "4194305"});
  ASSERT_TRUE(larger.reply);
  EXPECT_EQ(larger.reply->refusal, Errc::kLimit);
  const Outcome request =
      call_once(stage, "c", {.method = TestMethods::kEcho, .body = std::string(4_MiB + 1, 'x')});
  ASSERT_FALSE(request.reply);
  EXPECT_EQ(request.reply.error(), Errc::kInvalid);
  const Outcome echoed =
      call_once(stage, "d", {.method = TestMethods::kEcho, .body = std::string(4_MiB, 'x')});
  ASSERT_TRUE(echoed.reply);
  EXPECT_EQ(echoed.reply->body.size(), 4_MiB);
}

TEST(RpcCalls, UnknownMethodIsRefused) {
  Stage stage;
  stage.start_server();
  const Outcome outcome = call_once(stage, "a", {.method = 99});
  ASSERT_TRUE(outcome.reply);
  EXPECT_EQ(outcome.reply->refusal, Errc::kUnsupported);
  EXPECT_EQ(call_once(stage, "b", {.method = TestMethods::kCount}).reply->refusal,
            Errc::kUnsupported)
      << "one that pushes is not called";
}

TEST(RpcCalls, OtherVersionsAndServicesAreToldClearly) {
  Stage stage;
  stage.start_server();
  stage.change_client = [](rpc::ClientOptions& options) {
    options.session.service_version = {.major = 4};
  };
  const Outcome version = call_once(stage, "a", {.method = TestMethods::kEcho});
  ASSERT_FALSE(version.reply);
  EXPECT_EQ(version.reply.error(), Errc::kUnsupported);
  EXPECT_EQ(version.reply.error().detail(), 3) << "what the server has";
  EXPECT_LT(version.took, 1_s);
  stage.change_client = [](rpc::ClientOptions& options) { options.session.service = "other"; };
  const Outcome service = call_once(stage, "b", {.method = TestMethods::kEcho});
  ASSERT_FALSE(service.reply);
  EXPECT_EQ(service.reply.error(), Errc::kUnsupported);
  EXPECT_STREQ(service.reply.error().what(), "the server serves something else");
}

TEST(RpcCalls, NobodyThereIsUnreachable) {
  Stage stage;
  const Outcome outcome = call_once(stage, "a", {.method = TestMethods::kEcho}, within(2_s));
  ASSERT_FALSE(outcome.reply);
  EXPECT_EQ(outcome.reply.error(), Errc::kUnreachable);
  EXPECT_LE(outcome.took, 2_s);
}

TEST(RpcCalls, SecondServerIsUsedWhenTheFirstIsGone) {
  Stage stage;
  stage.start_server();
  stage.change_client = [&](rpc::ClientOptions& options) {
    options.servers.insert(options.servers.begin(), stage.cluster.node("gone").address(1));
  };
  const Outcome outcome = call_once(stage, "a", {.method = TestMethods::kEcho, .body = "x"});
  ASSERT_TRUE(outcome.reply);
  EXPECT_EQ(outcome.reply->body, "x");
}

// A partition says nothing; pings do.
TEST(RpcCalls, SilentServerIsNoticed) {
  Outcome outcome;
  Stage stage;
  stage.start_server();
  stage.cluster.node("a").start([&](Env& env) {
    return stage.use(env, [&](Env& there, rpc::Client& client) {
      return call_into(there, client, {.method = TestMethods::kWait}, within(60_s), outcome);
    });
  });
  ASSERT_TRUE(stage.cluster.run_until([&] { return stage.service->under_way == 1; }, 1_s));
  stage.cluster.partition("a", "server");
  ASSERT_TRUE(stage.cluster.run_until([&] { return !stage.cluster.node("a").is_running(); }, 10_s));
  ASSERT_FALSE(outcome.reply);
  EXPECT_EQ(outcome.reply.error(), Errc::kReset) << "it may have been heard";
  EXPECT_LE(outcome.took / 1_s, 4);
  EXPECT_TRUE(stage.cluster.run_until([&] { return stage.service->under_way == 0; }, 20_s))
      << "the server notices the client's silence too";
  stage.cluster.heal();
}

Task<void> read_counts(Env&, rpc::Client& client, size_t count, std::vector<std::string>& seen) {
  auto subscription = co_await client.subscribe({.method = TestMethods::kCount, .body = "5"}, {});
  if (!subscription) co_return;
  while (seen.size() < count) {
    const Result<Reply> push = co_await (*subscription)->next({});
    if (!push || push->refusal) co_return;
    seen.push_back(push->body);
  }
}

TEST(RpcPushes, ComeInOrderAndEndWithTheSubscriber) {
  Stage stage;
  stage.start_server();
  std::vector<std::string> seen;
  stage.run_client(
      "a", [&](Env& env, rpc::Client& client) { return read_counts(env, client, 100, seen); });
  ASSERT_EQ(seen.size(), 100u);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], std::to_string(i + 5));
  stage.cluster.run_for(10_ms);
  EXPECT_EQ(stage.service->ends.size(), 1u);
}

Task<void> subscribe_and_rest(Env& env, rpc::Client& client, Result<Reply>& call) {
  auto subscription = co_await client.subscribe({.method = TestMethods::kCount, .body = "1"}, {});
  EXPECT_TRUE(subscription);
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, 30_s);
  call = co_await client.call({.method = TestMethods::kEcho, .body = "x"}, {}, {});
}

TEST(RpcPushes, WaitForASubscriberThatTakesNone) {
  Stage stage;
  stage.start_server();
  Result<Reply> call = fail(Errc::kInvalid, "");
  stage.run_client(
      "a", [&](Env& env, rpc::Client& client) { return subscribe_and_rest(env, client, call); });
  EXPECT_TRUE(call) << "the connection is not in the way";
  EXPECT_EQ(stage.service->pushed_count, 4u) << "the window";
}

Task<void> wait_for_end(Env&, rpc::Client& client, Result<Reply>& end) {
  auto subscription = co_await client.subscribe({.method = TestMethods::kCount, .body = "1"}, {});
  EXPECT_TRUE(subscription);
  for (end = Reply{}; end && !end->refusal;) end = co_await (*subscription)->next({});
}

TEST(RpcServer, TellsItsClientsThatItEndsAndLetsCallsEnd) {
  Outcome outcome;
  Result<Reply> end = fail(Errc::kInvalid, "");
  Stage stage;
  stage.start_server();
  stage.cluster.node("a").start([&](Env& env) {
    return stage.use(env, [&](Env& there, rpc::Client& client) {
      return call_into(there, client, {.method = TestMethods::kSleep, .body = "500"}, {}, outcome);
    });
  });
  stage.cluster.node("b").start([&](Env& env) {
    return stage.use(
        env, [&](Env& there, rpc::Client& client) { return wait_for_end(there, client, end); });
  });
  stage.cluster.run_for(100_ms);
  stage.cluster.node("server").stop();
  ASSERT_TRUE(
      stage.cluster.run_until([&] { return !stage.cluster.node("server").is_running(); }, 10_s));
  stage.cluster.run_for(100_ms);
  ASSERT_TRUE(outcome.reply) << outcome.reply.error().text();
  EXPECT_EQ(outcome.reply->body, "500");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->refusal, Errc::kClosed);
}

TEST(RpcServer, CancelsCallsThatDoNotEnd) {
  Outcome outcome;
  Stage stage;
  stage.start_server();
  stage.cluster.node("a").start([&](Env& env) {
    return stage.use(env, [&](Env& there, rpc::Client& client) {
      return call_into(there, client, {.method = TestMethods::kWait}, within(60_s), outcome);
    });
  });
  stage.cluster.run_for(100_ms);
  const Time begin = stage.cluster.now();
  stage.cluster.node("server").stop();
  ASSERT_TRUE(
      stage.cluster.run_until([&] { return !stage.cluster.node("server").is_running(); }, 10_s));
  EXPECT_LT(stage.cluster.now() - begin, 3_s);
}

}  // namespace
}  // namespace cairn::rpc_tests
