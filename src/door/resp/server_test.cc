// SPDX-License-Identifier: Apache-2.0
// A door in a simulated world: what no client of a fast server sees.
#include "door/resp/server.h"

#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error_text.h"
#include "door/resp/client.h"
#include "door/resp/slow_keyspace_testing.h"
#include "env/io.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::door::resp {
namespace {

constexpr uint16_t kPort = 6390;
constexpr std::array<uint32_t, 3> kSegments = {3, 1000, 64 << 10};

// A server over a slow keyspace, and its clients, on one core.
class Stage {
 public:
  Stage(env::Env& env, const RespOptions& options)
      : env_(env), keys(env), server(env, keys, options) {
    Result<env::Address> at = server.listen(env::Address::ip4(0, 0, 0, 0, kPort));
    EXPECT_TRUE(at.has_value());
  }

  task::Task<std::unique_ptr<RespClient>> connect() {
    Result<std::unique_ptr<env::Stream>> stream =
        co_await env::connect_stream(env_, env::Address::loopback(kPort));
    EXPECT_TRUE(stream.has_value());
    co_return std::make_unique<RespClient>(std::move(*stream));
  }
  env::Env& env() { return env_; }

 private:
  env::Env& env_;

 public:
  SlowKeyspace keys;
  RespServer server;
};

template <class Body>
task::Task<void> run_in(env::Env& env, Body body, RespOptions options) {
  Stage stage(env, options);
  co_await body(stage);
  co_await stage.server.close();
  EXPECT_EQ(stage.server.connections(), 0U);
  EXPECT_EQ(stage.server.state().client_bytes, 0U);
}

class RespServing : public testing::Test {
 public:
  struct Scene {
    Stage& scene;
  };

 protected:
  // With streams that are cut into pieces, for several seeds.
  template <class Body>
  void run(Body body, const RespOptions& options = {}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      sim::ClusterOptions world;
      world.seed = seed;
      world.network.segment_size_max = kSegments[seed % std::size(kSegments)];
      sim::Cluster cluster(world);
      sim::Node& node = cluster.node("a");
      node.start([body, options](env::Env& env) { return run_in(env, body, options); });
      EXPECT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 10'000_s));
    }
  }
};

// The words, split at spaces.
std::string request(std::string_view line) {
  std::vector<std::string_view> split;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    split.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return encode_request(split);
}

std::string text_of(const Value& value) {
  switch (value.marker) {
    case Marker::kInteger:
      return std::to_string(value.integer);
    case Marker::kNull:
      return "(null)";
    case Marker::kArray: {
      std::string text = "[";
      for (const Value& item : value.items) text += text_of(item) + " ";
      return text + "]";
    }
    default:
      return value.text;
  }
}

task::Task<std::string> next_reply(RespClient& client) {
  const Result<Value> reply = co_await client.receive({});
  co_return reply ? text_of(*reply) : std::string(name(reply.error().code()));
}

// Sends all requests at once, and expects these replies in their order.
task::Task<void> expect_replies(RespClient& client, std::vector<std::string> requests,
                                std::vector<std::string> replies) {
  std::string bytes;
  for (const std::string& each : requests) bytes += request(each);
  const Result<void> sent = co_await client.send(bytes, {});
  EXPECT_TRUE(sent.has_value());
  for (size_t i = 0; i < replies.size(); ++i) {
    const std::string reply = co_await next_reply(client);
    EXPECT_EQ(reply, replies[i]) << "of request " << i;
  }
}

SIM_TEST_F(RespServing, RunsRequestsTogetherAndAnswersThemInOrder) {
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  std::vector<std::string> requests;
  std::vector<std::string> replies;
  for (int i = 0; i < 200; ++i) {
    requests.push_back("SET key" + std::to_string(i % 50) + " " + std::to_string(i));
    replies.emplace_back("OK");
    if (i < 50 || i % 3 != 0) continue;
    requests.push_back("GET key" + std::to_string((i + 25) % 50));
    replies.push_back(std::to_string(i - 25));
  }
  co_await expect_replies(*client, requests, replies);
  EXPECT_GT(scene.keys.at_once_max, 8U) << "requests of different keys run together";
}

SIM_TEST_F(RespServing, ARequestSeesWhatThoseBeforeItHaveDone) {
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  co_await expect_replies(*client, {"SET a 1", "INCR a", "GET a", "MGET a b", "DEL a b", "GET a"},
                          {"OK", "2", "2", "[2 (null) ]", "1", "(null)"});
  co_await expect_replies(*client,
                          {"SET x 1", "PING", "MULTI", "INCR x", "SET y 5", "EXEC", "GET y"},
                          {"OK", "PONG", "OK", "QUEUED", "QUEUED", "[2 OK ]", "5"});
}

task::Task<void> transact(Stage& scene, int times) {
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  for (int done = 0; done < times;) {
    co_await expect_replies(*client, {"WATCH n"}, {"OK"});
    Result<Value> read = co_await client->call({"GET", "n"}, {});
    EXPECT_TRUE(read.has_value());
    const int value = read->text.empty() ? 0 : std::stoi(read->text);
    co_await expect_replies(*client, {"MULTI", "SET n " + std::to_string(value + 1)},
                            {"OK", "QUEUED"});
    const Result<Value> executed = co_await client->call({"EXEC"}, {});
    EXPECT_TRUE(executed.has_value());
    if (executed && executed->marker == Marker::kArray) ++done;
  }
}

SIM_TEST_F(RespServing, TransactionsThatWatchLoseNoUpdate) {
  std::vector<task::Task<void>> all;
  for (int i = 0; i < 4; ++i) all.push_back(transact(scene, 10));
  for (task::Task<void>& each : all) co_await each;
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  co_await expect_replies(*client, {"GET n"}, {"40"});
}

SIM_TEST_F(RespServing, AFailedChangeIsAnErrorAndChangesNothing) {
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  co_await expect_replies(*client, {"SET a 1"}, {"OK"});
  scene.keys.failure = Error(Errc::kNoSpace, "the drive is full");
  co_await expect_replies(
      *client, {"SET a 2", "GET a", "MULTI", "SET a 3", "GET a", "EXEC"},
      {"OOM command not allowed: there is no space for more keys and values (the drive is full)",
       "1", "OK", "QUEUED", "QUEUED",
       "OOM command not allowed: there is no space for more keys and values (the drive is full)"});
  scene.keys.failure = Error(Errc::kIo, "the drive failed");
  co_await expect_replies(*client, {"SET a 2", "GET a"}, {"ERR the drive failed", "1"});
  scene.keys.failure.reset();
  co_await expect_replies(*client, {"SET a 2", "GET a"}, {"OK", "2"});
}

SIM_TEST_F(RespServing, OneReplyHasNoMoreThanAFewValuesOfTheLargestSize) {
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  co_await expect_replies(*client, {"SETRANGE big 16777215 x"}, {"16777216"});
  std::string mget = "MGET";
  for (int i = 0; i < 17; ++i) mget += " big";
  co_await expect_replies(*client, {mget}, {"ERR the values are more than 256 MiB together"});
  std::vector<std::string> requests = {"MULTI", "SET other 1"};
  std::vector<std::string> replies = {"OK", "QUEUED"};
  for (int i = 0; i < 17; ++i) {
    requests.emplace_back("GET big");
    replies.emplace_back("QUEUED");
  }
  requests.insert(requests.end(), {"EXEC", "EXISTS other"});
  replies.insert(replies.end(), {"ERR the values are more than 256 MiB together", "0"});
  co_await expect_replies(*client, requests, replies);
}

task::Task<void> stalling(Stage& scene) {
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  const Result<void> sent = co_await client->send("*2\r\n$4\r\nECHO\r\n$10\r\nabc", {});
  EXPECT_TRUE(sent.has_value());
  const Time before = scene.env().now();
  const std::string end = co_await next_reply(*client);
  EXPECT_EQ(end, "closed");
  EXPECT_GE(scene.env().now() - before, 5_s);
  EXPECT_LT(scene.env().now() - before, 6_s);
  const std::unique_ptr<RespClient> idle = co_await scene.connect();
  const Result<void> slept = co_await task::sleep_for(scene.env(), 1000_s);
  EXPECT_TRUE(slept.has_value());
  co_await expect_replies(*idle, {"PING"}, {"PONG"});
  co_await expect_replies(*idle, {"CONFIG SET timeout 10"}, {"OK"});
  const Time then = scene.env().now();
  const std::string bored = co_await next_reply(*idle);
  EXPECT_EQ(bored, "closed");
  EXPECT_GE(scene.env().now() - then, 9_s);
}

TEST_F(RespServing, EndsWhoStopsInTheMiddleAndNotWhoIsIdle) {
  run(&stalling, {.stall_timeout = 5_s});
}

task::Task<void> unread(Stage& scene) {
  const std::unique_ptr<RespClient> slow = co_await scene.connect();
  const std::string value(100'000, 'v');
  co_await expect_replies(*slow, {"SET big " + value}, {"OK"});
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += request("GET big");
  const Result<void> sent = co_await slow->send(requests, {});
  EXPECT_TRUE(sent.has_value());
  const Result<void> slept = co_await task::sleep_for(scene.env(), 2_s);
  EXPECT_TRUE(slept.has_value());
  EXPECT_LT(scene.server.state().client_bytes, 20'000'000U) << "of 100 MB";
  const Result<void> more = co_await task::sleep_for(scene.env(), 10_s);
  EXPECT_TRUE(more.has_value());
  EXPECT_EQ(scene.server.connections(), 0U);
}

TEST_F(RespServing, EndsWhoDoesNotReadItsReplies) { run(&unread, {.stall_timeout = 5_s}); }

SIM_TEST_F(RespServing, KillsAClientThatWaits) {
  const std::unique_ptr<RespClient> sleeper = co_await scene.connect();
  const std::string line = request("DEBUG SLEEP 1000");
  const Result<void> sent = co_await sleeper->send(line, {});
  EXPECT_TRUE(sent.has_value());
  const std::unique_ptr<RespClient> killer = co_await scene.connect();
  const Result<void> slept = co_await task::sleep_for(scene.env(), 1_s);
  EXPECT_TRUE(slept.has_value());
  co_await expect_replies(*killer, {"CLIENT KILL TYPE normal", "PING"}, {"1", "PONG"});
  const std::string end = co_await next_reply(*sleeper);
  EXPECT_EQ(end, "closed");
}

SIM_TEST_F(RespServing, AnswersWhatItHasTakenBeforeItEnds) {
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  co_await expect_replies(*client, {"PING"}, {"PONG"});
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += request("SET key" + std::to_string(i) + " v");
  const Result<void> sent = co_await client->send(bytes, {});
  EXPECT_TRUE(sent.has_value());
  const std::string first = co_await next_reply(*client);
  EXPECT_EQ(first, "OK");
  co_await scene.server.drain(scene.env().now() + 10_s);
  EXPECT_EQ(scene.server.connections(), 0U);
  std::string reply = first;
  int answered = 1;
  while (reply == "OK") {
    reply = co_await next_reply(*client);
    answered += reply == "OK" ? 1 : 0;
  }
  EXPECT_EQ(reply, "closed") << "in good order";
  EXPECT_EQ(scene.keys.size(), static_cast<uint64_t>(answered)) << "what was done is answered";
}

task::Task<void> strangers(Stage& scene) {
  std::vector<std::unique_ptr<RespClient>> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(co_await scene.connect());
  const Result<void> slept = co_await task::sleep_for(scene.env(), 2_s);
  EXPECT_TRUE(slept.has_value());
  EXPECT_EQ(scene.server.connections(), 20U);
  const std::string refused = co_await next_reply(*silent.back());
  EXPECT_EQ(refused, "ERR max number of clients reached");
  silent.clear();
  const Result<void> again = co_await task::sleep_for(scene.env(), 2_s);
  EXPECT_TRUE(again.has_value());
  const std::unique_ptr<RespClient> client = co_await scene.connect();
  co_await expect_replies(*client, {"AUTH sesame", "PING"}, {"OK", "PONG"});
}

TEST_F(RespServing, TellsWhoFindsNoPlace) {
  run(&strangers, {.clients_max = 20, .password = digest_of_password("sesame")});
}

}  // namespace
}  // namespace cairn::door::resp
