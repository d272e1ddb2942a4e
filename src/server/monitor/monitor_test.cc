// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/monitor.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "env/io.h"
#include "http/connection.h"
#include "server/monitor/http_address.h"
#include "server/monitor/process_metrics.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "testing/sim_test.h"

namespace cairn::server {
namespace {

// Says of itself what it is told to.
struct Told final : Monitor::Source {
  explicit Told(env::Env& its_env) : env(its_env) {}
  ProcessState state() override { return {.role = "test", .uptime = 5_s, .health = health}; }
  task::Task<void> tell_metrics(MetricsText& /*text*/) override { co_return; }
  task::Task<Wellness> tell_health() override {
    co_return Wellness{.health = health, .json = R"({"health": "so"})"};
  }
  env::Env& env;
  drive::Health health = drive::Health::kOk;
};

struct Answer {
  int status = 0;
  std::string body;
};

task::Task<Answer> get(env::Env& env, env::Address at, std::string path,
                       std::string fields = "Host: 127.0.0.1:9640\r\n") {
  Answer answer;
  Result<std::unique_ptr<env::Stream>> stream = co_await env::connect_stream(env, at);
  if (!stream) co_return answer;
  http::Connection connection(std::move(*stream));
  const std::string head = "GET " + path + " HTTP/1.1\r\n" + fields + "\r\n";
  const http::Request request{.head = head, .body = {}};
  const Result<http::ResponseHead> told = co_await connection.send(request, {});
  if (!told) co_return answer;
  answer.status = told->status;
  for (;;) {
    const Result<Bytes> bytes = co_await connection.receive({});
    if (!bytes || bytes->empty()) co_return answer;
    answer.body += as_text(*bytes);
  }
}

SIM_TEST(Monitor, TellsHowAProcessIs) {
  Told told(env);
  Monitor monitor(env, told, nullptr);
  const auto listening = co_await monitor.listen({env::Address::loopback(9640)});
  CO_ASSERT_TRUE(listening.has_value());
  const Answer well = co_await get(env, listening->front(), "/healthz");
  EXPECT_EQ(well.status, 200);
  EXPECT_EQ(well.body, "{\"health\": \"so\"}\n");
  told.health = drive::Health::kDegraded;
  const Answer degraded = co_await get(env, listening->front(), "/healthz");
  EXPECT_EQ(degraded.status, 200) << "it can be used";
  told.health = drive::Health::kFailing;
  const Answer failing = co_await get(env, listening->front(), "/healthz");
  EXPECT_EQ(failing.status, 503);
  const Answer metrics = co_await get(env, listening->front(), "/metrics");
  EXPECT_EQ(metrics.status, 200);
  for (const char* line :
       {"cairn_health 2\n", "cairn_build_info{role=\"test\",version=", "cairn_start_time_seconds ",
        "cairn_http_requests_total{code=\"200\"} 2\n",
        "cairn_http_requests_total{code=\"503\"} 1\n", "cairn_http_connections "}) {
    EXPECT_NE(metrics.body.find(line), std::string::npos) << line << " in\n" << metrics.body;
  }
  const Answer nothing = co_await get(env, listening->front(), "/");
  EXPECT_EQ(nothing.status, 404);
  co_await monitor.close();
}

SIM_TEST(Monitor, SaysWhatToDoAboutAnAddressThatIsTaken) {
  Told told(env);
  Monitor one(env, told, nullptr);
  Monitor other(env, told, nullptr);
  const auto first = co_await one.listen({env::Address::loopback(9640)});
  EXPECT_TRUE(first.has_value());
  const auto second = co_await other.listen({env::Address::loopback(9640)});
  CO_ASSERT_TRUE(!second.has_value());
  EXPECT_NE(second.error().text.find("choose another port"), std::string::npos);
  co_await one.close();
  co_await other.close();
}

constexpr const char* kNearHost = "Host: 127.0.0.1:9640\r\n";

SIM_TEST(Monitor, TellsEventsAsJson) {
  Told told(env);
  EventLog log(env, {.role = "test"});
  Monitor monitor(env, told, &log);
  const auto at = co_await monitor.listen({env::Address::loopback(9640)});
  CO_ASSERT_TRUE(at.has_value());
  for (const char* each : {"a", "b", "c"}) log.tell({.kind = "drive", .subject = each});
  const Answer status = co_await get(env, at->front(), "/api/v1/status");
  EXPECT_EQ(status.body, "{\"health\": \"so\"}\n");
  const Answer page = co_await get(env, at->front(), "/api/v1/events?after=1&count=1");
  EXPECT_EQ(page.status, 200);
  const Json json = Json::parse(page.body);
  EXPECT_EQ(number_at(json, "schema_version"), 1u);
  EXPECT_EQ(number_at(json, "last"), 3u);
  EXPECT_TRUE(flag_at(json, "more"));
  CO_ASSERT_TRUE(list_at(json, "events").size() == 1);
  EXPECT_EQ(text_at(list_at(json, "events")[0], "subject"), "b");
  // One that waits gets what comes, and does not hold up the end.
  const Time before = env.now();
  const Answer none = co_await get(env, at->front(), "/api/v1/events?after=3&wait=10");
  EXPECT_GE((env.now() - before).ns, Duration(10_s).ns);
  EXPECT_TRUE(list_at(Json::parse(none.body), "events").empty());
  for (const char* bad :
       {"after=x", "count=0", "count=1001", "wait=26", "since=now", "what=1", "a"}) {
    const Answer refused = co_await get(env, at->front(), std::string("/api/v1/events?") + bad);
    EXPECT_EQ(refused.status, 400) << bad;
    EXPECT_FALSE(text_at(Json::parse(refused.body), "error").empty());
  }
  const Answer since =
      co_await get(env, at->front(), "/api/v1/events?since=2190-01-01T00%3A00%3A00%2B01:00");
  EXPECT_EQ(since.status, 200);
  EXPECT_TRUE(list_at(Json::parse(since.body), "events").empty());
  co_await monitor.close();
}

SIM_TEST(Monitor, TellsItsEventsToThisMachineAlone) {
  Told told(env);
  EventLog log(env, {.role = "test"});
  Monitor monitor(env, told, &log);
  const auto at =
      co_await monitor.listen({env::Address::loopback(9640), *env::Address::parse("0.0.0.0:9641"),
                               *env::Address::parse("unix:/run/m")});
  CO_ASSERT_TRUE(at.has_value());
  const Answer near = co_await get(env, at->at(0), "/api/v1/events", kNearHost);
  EXPECT_EQ(near.status, 200);
  // A page of somebody else's that has a name point here.
  const Answer elsewhere = co_await get(env, at->at(0), "/api/v1/events", "Host: evil.example\r\n");
  EXPECT_EQ(elsewhere.status, 403);
  const Answer tricky =
      co_await get(env, at->at(0), "/api/v1/events", "Host: 127.0.0.1.evil.example:9640\r\n");
  EXPECT_EQ(tricky.status, 403);
  const Answer far = co_await get(env, env::Address::loopback(9641), "/api/v1/events", kNearHost);
  EXPECT_EQ(far.status, 403);
  EXPECT_NE(far.body.find("--http-token"), std::string::npos);
  const Answer metrics = co_await get(env, env::Address::loopback(9641), "/metrics", kNearHost);
  EXPECT_EQ(metrics.status, 200);
  const Answer local = co_await get(env, at->at(2), "/api/v1/events", "Host: a\r\n");
  EXPECT_EQ(local.status, 200);
  co_await monitor.close();
}

SIM_TEST(Monitor, TellsItsEventsToWhoShowsTheTokenAndLimitsGuesses) {
  Told told(env);
  EventLog log(env, {.role = "test"});
  Monitor monitor(env, told, &log, digest_of_token("a token of many letters"));
  const auto at = co_await monitor.listen({*env::Address::parse("0.0.0.0:9641")});
  CO_ASSERT_TRUE(at.has_value());
  const env::Address near = env::Address::loopback(9641);
  const std::string host = kNearHost;
  const std::string right = host + "Authorization: Bearer a token of many letters\r\n";
  const Answer without = co_await get(env, near, "/api/v1/status", host);
  EXPECT_EQ(without.status, 401);
  const Answer with = co_await get(env, near, "/api/v1/status", right);
  EXPECT_EQ(with.status, 200);
  const Answer twice =
      co_await get(env, near, "/api/v1/status", right + "Authorization: Bearer x\r\n");
  EXPECT_EQ(twice.status, 400);
  for (uint32_t i = 0; i < ApiAccess::kFailuresMax; ++i) {
    const Answer wrong =
        co_await get(env, near, "/api/v1/status", host + "Authorization: Bearer x\r\n");
    EXPECT_EQ(wrong.status, 401) << i;
  }
  const Answer limited = co_await get(env, near, "/api/v1/status", right);
  EXPECT_EQ(limited.status, 429) << "who guessed is not heard";
  const Answer health = co_await get(env, near, "/healthz", host);
  EXPECT_EQ(health.status, 200);
  const Result<void> slept = co_await task::sleep_for(env, ApiAccess::kWindow);
  EXPECT_TRUE(slept);
  const Answer later = co_await get(env, near, "/api/v1/status", right);
  EXPECT_EQ(later.status, 200);
  co_await monitor.close();
}

task::Task<void> wait_for_event(env::Env& env, env::Address at, size_t& answered) {
  const Answer answer = co_await get(env, at, "/api/v1/events?wait=25");
  EXPECT_EQ(answer.status, 200);
  ++answered;
}

// Whatever becomes of it.
task::Task<void> ask_for_another(env::Env& env, env::Address at) {
  [[maybe_unused]] const Answer answer = co_await get(env, at, "/api/v1/events?after=1&wait=25");
}

SIM_TEST(Monitor, LeavesRoomBesideThoseThatWait) {
  Told told(env);
  EventLog log(env, {.role = "test"});
  Monitor monitor(env, told, &log);
  const auto at = co_await monitor.listen({env::Address::loopback(9640)});
  CO_ASSERT_TRUE(at.has_value());
  task::Gate gate;
  size_t answered = 0;
  for (size_t i = 0; i < 2 * Monitor::kWaitingMax; ++i) {
    gate.spawn(wait_for_event(env, at->front(), answered));
  }
  Result<void> slept = co_await task::sleep_for(env, 5_s);
  EXPECT_EQ(answered, Monitor::kWaitingMax);
  log.tell({.kind = "drive", .subject = "a"});
  slept = co_await task::sleep_for(env, 5_s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(answered, 2 * Monitor::kWaitingMax);
  // Who waits does not hold up the end.
  gate.spawn(ask_for_another(env, at->front()));
  slept = co_await task::sleep_for(env, 1_s);
  const Time before = env.now();
  co_await monitor.close();
  EXPECT_LT((env.now() - before).ns, Duration(1_s).ns);
  co_await gate.close();
}

TEST(HttpAddress, IsOfThisMachineUnlessSomethingElseIsSaid) {
  EXPECT_EQ(parse_http_address("9640")->text(), "127.0.0.1:9640");
  EXPECT_EQ(parse_http_address("0.0.0.0:9640")->text(), "0.0.0.0:9640");
  EXPECT_EQ(parse_http_address("unix:/run/m")->text(), "unix:/run/m");
  for (const char* text : {"", ":9640", "70000", "host", "host:1:2", "-1"}) {
    const Attempt<env::Address> at = parse_http_address(text);
    ASSERT_FALSE(at.has_value()) << text;
    EXPECT_NE(at.error().text.find("write 9640"), std::string::npos);
  }
}

}  // namespace
}  // namespace cairn::server
