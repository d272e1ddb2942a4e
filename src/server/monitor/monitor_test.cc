// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/monitor.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "env/io.h"
#include "http/connection.h"
#include "server/monitor/http_address.h"
#include "server/monitor/process_metrics.h"
#include "testing/sim_test.h"

namespace cairn::server {
namespace {

// Says of itself what it is told to.
struct Told final : Monitor::Source {
  explicit Told(env::Env& its_env) : env(its_env) {}
  task::Task<void> tell_metrics(MetricsText& text) override {
    add_process(text, env, {.role = "test", .uptime = 5_s, .health = health});
    co_return;
  }
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

task::Task<Answer> get(env::Env& env, env::Address at, std::string path) {
  Answer answer;
  Result<std::unique_ptr<env::Stream>> stream = co_await env::connect_stream(env, at);
  if (!stream) co_return answer;
  http::Connection connection(std::move(*stream));
  const std::string head = "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
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
  Monitor monitor(env, told);
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
  Monitor one(env, told);
  Monitor other(env, told);
  const auto first = co_await one.listen({env::Address::loopback(9640)});
  EXPECT_TRUE(first.has_value());
  const auto second = co_await other.listen({env::Address::loopback(9640)});
  CO_ASSERT_TRUE(!second.has_value());
  EXPECT_NE(second.error().text.find("choose another port"), std::string::npos);
  co_await one.close();
  co_await other.close();
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
