// SPDX-License-Identifier: Apache-2.0
// A server of pages in a simulated world: clients that are slow, hostile, or die.
#include "http/server.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "env/io.h"
#include "http/connection.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::http {
namespace {

constexpr uint16_t kPort = 9640;

// A server with a page that is there at once, a large one, and one that waits to be let go.
struct Stage {
  explicit Stage(env::Env& its_env, const ServerLimits& limits = {})
      : env(its_env), server(its_env, limits) {
    server.add("/small", [this](Asked asked) { return small(std::move(asked.query)); });
    server.add("/large", [this](const Asked&) { return large(); });
    server.add("/slow", [this](const Asked&) { return slow(); });
    EXPECT_TRUE(server.listen(env::Address::ip4(0, 0, 0, 0, kPort)).has_value());
  }
  task::Task<Page> small(std::string query) {
    ++made;
    co_return Page{.body = "small " + query};
  }
  task::Task<Page> large() {
    ++made;
    co_return Page{.body = std::string(large_bytes, 'x')};
  }
  task::Task<Page> slow() {
    ++made;
    const Result<void> waited = co_await go.wait();
    co_return Page{.body = waited ? "slow" : "never"};
  }

  env::Env& env;
  Server server;
  task::Event go;
  int made = 0;
  size_t large_bytes = 8UL << 20;
};

using Stream = std::unique_ptr<env::Stream>;

task::Task<Stream> connect(env::Env& env) {
  Result<Stream> stream = co_await env::connect_stream(env, env::Address::loopback(kPort));
  EXPECT_TRUE(stream.has_value());
  co_return std::move(*stream);
}

task::Task<void> send(env::Stream& stream, std::string text) {
  const Result<void> sent = co_await stream.write(as_bytes(text));
  EXPECT_TRUE(sent.has_value());
}

// Everything until the server's end, and how that came.
task::Task<std::string> read_all(env::Stream& stream) {
  std::string all;
  std::array<std::byte, 4096> bytes{};
  for (;;) {
    const Result<size_t> got = co_await stream.read(bytes);
    if (!got) co_return all + "[" + std::string(got.error().what()) + "]";
    if (*got == 0) co_return all;
    all += as_text(Bytes(bytes).first(*got));
  }
}

std::string get(std::string_view path, std::string_view fields = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
constexpr std::string_view kClose = "Connection: close\r\n";

std::string status_line(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }

task::Task<std::string> ask(env::Env& env, std::string request) {
  const Stream stream = co_await connect(env);
  co_await send(*stream, std::move(request));
  std::string answer = co_await read_all(*stream);
  co_return answer;
}

SIM_TEST(HttpServer, AnswersOneRequestAfterTheOtherOnAConnection) {
  Stage stage(env);
  Connection client(co_await connect(env));
  for (const char* query : {"a", "b", "c"}) {
    const std::string head = get(std::string("/small?") + query);
    const Request request{.head = head, .body = {}};
    const Result<ResponseHead> answer = co_await client.send(request, {});
    CO_ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 200);
    const Result<Bytes> body = co_await client.receive({});
    CO_ASSERT_TRUE(body.has_value());
    EXPECT_EQ(as_text(*body), std::string("small ") + query);
    EXPECT_TRUE(client.is_reusable());
  }
  EXPECT_EQ(stage.server.connections(), 1U);
  co_await stage.server.close();
  EXPECT_EQ(stage.server.connections(), 0U);
  EXPECT_EQ(stage.server.answered().at(Status::kOk), 3U);
}

SIM_TEST(HttpServer, AnswersInTurnWhatCameAtOnce) {
  Stage stage(env);
  const std::string answer =
      co_await ask(env, get("/small?1") + get("/small?2") + get("/small?3", kClose));
  size_t at = 0;
  for (const char* each : {"small 1", "small 2", "small 3"}) {
    at = answer.find(each, at);
    EXPECT_NE(at, std::string::npos) << each << " in " << answer;
  }
  co_await stage.server.close();
}

SIM_TEST(HttpServer, HasNoBodyForHead) {
  Stage stage(env);
  const std::string answer =
      co_await ask(env, "HEAD /small?x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status_line(answer), "HTTP/1.1 200 OK");
  EXPECT_NE(answer.find("Content-Length: 7\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
  co_await stage.server.close();
}

SIM_TEST(HttpServer, SaysWhatThereIsAndWhatMayBeDone) {
  Stage stage(env);
  const std::string missing = co_await ask(env, get("/nothing", kClose));
  EXPECT_EQ(status_line(missing), "HTTP/1.1 404 Not Found");
  EXPECT_NE(missing.find("/small\n"), std::string::npos);
  const std::string refused =
      co_await ask(env, "DELETE /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status_line(refused), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_NE(refused.find("Allow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_EQ(stage.made, 0);
  co_await stage.server.close();
}

// The client has sent more than was read; a connection that is reset would lose the answer.
SIM_TEST(HttpServer, IsHeardByThoseItRefuses) {
  Stage stage(env);
  const std::string much(20'000, 'x');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"GET /" + much, "HTTP/1.1 414 URI Too Long"},
      {"GET / HTTP/1.1\r\nX: " + much, "HTTP/1.1 431 Request Header Fields Too Large"},
      {get("/small", "Content-Length: 20000\r\n") + much, "HTTP/1.1 413 Content Too Large"},
      {"PUT /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + much,
       "HTTP/1.1 405 Method Not Allowed"},
      {"GET / HTTP/3.0\r\n\r\n" + much, "HTTP/1.1 505 HTTP Version Not Supported"},
      {"\x16\x03\x01 \r\n\r\n" + much, "HTTP/1.1 400 Bad Request"}};
  for (const auto& [request, expected] : cases) {
    const Stream stream = co_await connect(env);
    co_await send(*stream, request);
    EXPECT_TRUE(stream->finish().has_value());
    const std::string answer = co_await read_all(*stream);
    EXPECT_EQ(status_line(answer), expected);
    EXPECT_EQ(answer.find('['), std::string::npos) << answer;
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
  }
  EXPECT_EQ(stage.made, 0);
  co_await stage.server.close();
}

SIM_TEST(HttpServer, WaitsForNobodyForever) {
  Stage stage(env);
  const Time begun = env.now();
  const Stream slow = co_await connect(env);
  co_await send(*slow, "GET /small HTTP/1.1\r\n");
  const std::string answer = co_await read_all(*slow);
  EXPECT_EQ(status_line(answer), "HTTP/1.1 408 Request Timeout");
  EXPECT_GE(env.now() - begun, 5_s);
  EXPECT_LT(env.now() - begun, 7_s);

  const Time again = env.now();
  const Stream silent = co_await connect(env);
  const std::string nothing = co_await read_all(*silent);
  EXPECT_EQ(nothing, "");
  EXPECT_LT(env.now() - again, 76_s);
  co_await stage.server.close();
}

SIM_TEST(HttpServer, EndsWithAClientThatDoesNotReadItsAnswer) {
  Stage stage(env);
  const Stream stream = co_await connect(env);
  co_await send(*stream, get("/large"));
  const Result<void> slept = co_await task::sleep_for(env, 11_s);
  EXPECT_TRUE(slept.has_value());
  EXPECT_EQ(stage.made, 1);
  EXPECT_EQ(stage.server.connections(), 0U);
  co_await stage.server.close();
}

SIM_TEST(HttpServer, HasAPlaceForTheNextWhoeverHoldsTheOthers) {
  Stage stage(env, {.connections_max = 3});
  std::vector<Stream> holders;
  holders.push_back(co_await connect(env));
  co_await send(*holders.back(), "GET /sm");
  holders.push_back(co_await connect(env));
  holders.push_back(co_await connect(env));
  co_await send(*holders.back(), get("/large"));
  const std::string answer = co_await ask(env, get("/small", kClose));
  EXPECT_EQ(status_line(answer), "HTTP/1.1 200 OK");
  const std::string first = co_await read_all(*holders[0]);
  EXPECT_EQ(first.find("200"), std::string::npos);
  EXPECT_LE(stage.server.connections(), 3U);
  EXPECT_EQ(stage.server.refused(), 0U);
  co_await stage.server.close();
}

SIM_TEST(HttpServer, RefusesAConnectionWhenAllAreBeingServed) {
  Stage stage(env, {.connections_max = 2});
  std::vector<Stream> served;
  for (int i = 0; i < 2; ++i) {
    served.push_back(co_await connect(env));
    co_await send(*served.back(), get("/slow", kClose));
  }
  while (stage.made < 2) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept.has_value());
  }
  const Stream late = co_await connect(env);
  const std::string answer = co_await read_all(*late);
  EXPECT_EQ(status_line(answer), "HTTP/1.1 503 Service Unavailable");
  EXPECT_EQ(stage.server.refused(), 1U);
  stage.go.set();
  for (const Stream& each : served) {
    const std::string told = co_await read_all(*each);
    EXPECT_TRUE(told.ends_with("slow")) << told;
  }
  co_await stage.server.close();
}

SIM_TEST(HttpServer, EndsAConnectionThatAsksOnAndOn) {
  Stage stage(env, {.requests_max = 2});
  const std::string answer = co_await ask(env, get("/small?1") + get("/small?2") + get("/small?3"));
  EXPECT_NE(answer.find("small 2"), std::string::npos);
  EXPECT_EQ(answer.find("small 3"), std::string::npos);
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  co_await stage.server.close();
}

SIM_TEST(HttpServer, ClosesWhateverItsClientsDo) {
  Stage stage(env);
  const Stream idle = co_await connect(env);
  const Stream half = co_await connect(env);
  co_await send(*half, "GET /");
  const Stream deaf = co_await connect(env);
  co_await send(*deaf, get("/large"));
  const Stream waiting = co_await connect(env);
  co_await send(*waiting, get("/slow"));
  while (stage.made < 2) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept.has_value());
  }
  stage.go.set();
  const Time begun = env.now();
  co_await stage.server.close();
  EXPECT_LT(env.now() - begun, 1_s);
  EXPECT_EQ(stage.server.connections(), 0U);
}

task::Task<void> serve_until_stopped(env::Env& env, size_t& left) {
  Stage stage(env, {.connections_max = 4});
  stage.large_bytes = 64UL << 10;
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  left = stage.server.connections();
  co_await stage.server.close();
}

// Asks for pages, and for what is none, until it is killed.
task::Task<void> ask_on_and_on(env::Env& env, env::Address at) {
  const std::array<std::string, 4> requests = {get("/small"), get("/large"), "GET / HT",
                                               std::string(9000, 'x')};
  while (!env.stop_token().requested()) {
    Result<Stream> stream = co_await env::connect_stream(env, at, {}, env.stop_token());
    if (!stream) continue;
    const std::string& request = requests[env.rng().below(requests.size())];
    [[maybe_unused]] const Result<void> sent = co_await (*stream)->write(as_bytes(request));
    std::array<std::byte, 512> bytes{};
    [[maybe_unused]] const Result<size_t> got = co_await (*stream)->read(bytes, env.stop_token());
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, 1_ms, env.stop_token());
  }
}

task::Task<void> ask_once(env::Env& env, env::Address at, std::string& answer) {
  Result<Stream> stream = co_await env::connect_stream(env, at);
  if (!stream) co_return;
  const std::string request = get("/small?last", kClose);
  [[maybe_unused]] const Result<void> sent = co_await (*stream)->write(as_bytes(request));
  answer = co_await read_all(**stream);
}

TEST(HttpServer, ServesOnWhenClientsDieInTheMiddle) {
  constexpr int kClients = 8;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    std::string answer;
    size_t left = 0;
    sim::ClusterOptions world;
    world.seed = seed;
    world.network.segment_size_max = seed % 2 == 0 ? 512 : 4096;
    sim::Cluster cluster(world);
    sim::Node& server = cluster.node("server");
    server.start([&left](env::Env& env) { return serve_until_stopped(env, left); });
    const env::Address at = server.address(kPort);
    for (int i = 0; i < kClients; ++i) {
      sim::Node& client = cluster.node("client" + std::to_string(i));
      client.start([at](env::Env& env) { return ask_on_and_on(env, at); });
    }
    cluster.run_for(100_ms);
    for (int i = 0; i < kClients; ++i) {
      sim::Node& client = cluster.node("client" + std::to_string(i));
      i % 2 == 0 ? client.kill() : client.crash();
    }
    sim::Node& last = cluster.node("last");
    last.start([at, &answer](env::Env& env) { return ask_once(env, at, answer); });
    EXPECT_TRUE(cluster.run_until([&] { return !last.is_running(); }, 100_s)) << cluster.report();
    EXPECT_TRUE(answer.ends_with("small last")) << "seed " << seed << ": " << answer;
    cluster.run_for(100_s);
    server.stop();
    EXPECT_TRUE(cluster.run_until([&] { return !server.is_running(); }, 100_s));
    EXPECT_EQ(left, 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn::http
