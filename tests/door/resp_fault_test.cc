// SPDX-License-Identifier: Apache-2.0
// Clients of a key-value door where the network and the clients fail, seed by seed. A counter that
// several clients increment has no less than was acknowledged and no more than was asked for; two
// keys that are set in one transaction are never seen apart; after healing everybody gets on.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "door/resp/client.h"
#include "door/resp/server.h"
#include "door/resp/slow_keyspace_testing.h"
#include "env/io.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::door_tests {
namespace {

using door::resp::encode_request;
using door::resp::Marker;
using door::resp::RespClient;
using door::resp::Value;
using task::Task;

constexpr const char* kServer = "server";
constexpr uint16_t kPort = 6390;
constexpr size_t kClients = 3;

Task<bool> pause_for(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration, env.stop_token());
  co_return slept.has_value();
}

class RespWorkload final : public sim::Workload {
 public:
  RespWorkload() : done_(kClients) {}

  void start(sim::Cluster& cluster) override {
    sim::Node& server = cluster.node(kServer);
    const env::Address at = server.address(kPort);
    server.start([this, at](env::Env& env) { return serve(env, at); });
    for (size_t i = 0; i < kClients; ++i) {
      cluster.node("client" + std::to_string(i)).start([this, at, i](env::Env& env) {
        return use(env, at, i);
      });
    }
  }
  uint64_t progress() const override { return std::ranges::min(done_); }
  std::string check(sim::Cluster&) override { return wrong_; }

 private:
  Task<void> serve(env::Env& env, env::Address at) {
    door::resp::SlowKeyspace keys(env);
    door::resp::RespServer server(env, keys, {.stall_timeout = 5_s});
    if (server.listen(at)) {
      task::Event never;
      const Result<void> stopped = co_await never.wait(env.stop_token());
      (void)stopped;
    }
    co_await server.close();
  }

  // One connection after the other, each until it fails.
  Task<void> use(env::Env& env, env::Address at, size_t index) {
    while (!env.stop_token().requested()) {
      task::Deadline deadline(env, env.now() + 4_s, env.stop_token());
      Result<std::unique_ptr<env::Stream>> stream =
          co_await env::connect_stream(env, at, {}, deadline.token());
      if (stream) {
        RespClient client(std::move(*stream));
        bool going = true;
        while (going) going = co_await step(env, client, index);
      }
      const bool goes_on = co_await pause_for(env, 20_ms);
      if (!goes_on) co_return;
    }
  }

  // False: the connection is of no more use.
  Task<bool> step(env::Env& env, RespClient& client, size_t index) {
    task::Deadline deadline(env, env.now() + 4_s, env.stop_token());
    const bool going = env.rng().bernoulli(0.5) ? co_await count(env, client, deadline.token())
                                                : co_await set_both(env, client, deadline.token());
    if (going) ++done_[index];
    co_return going;
  }

  // Several increments at once, and then what has become of them.
  Task<bool> count(env::Env& env, RespClient& client, task::CancelToken token) {
    const uint64_t times = 1 + env.rng().below(8);
    std::string requests;
    for (uint64_t i = 0; i < times; ++i) {
      requests += encode_request(std::vector<std::string_view>{"INCR", "n"});
    }
    asked_ += times;
    const uint64_t before = acknowledged_;
    const Result<void> sent = co_await client.send(requests, token);
    if (!sent) co_return false;
    for (uint64_t i = 1; i <= times; ++i) {
      const Result<Value> reply = co_await client.receive(token);
      if (!reply) co_return false;
      note_count(*reply, before + i);
      ++acknowledged_;
    }
    co_return true;
  }
  // `least`: what was acknowledged before it was sent, and those before it.
  void note_count(const Value& reply, uint64_t min) {
    const auto count = static_cast<uint64_t>(reply.integer);
    if (reply.marker == Marker::kInteger && count >= min && count <= asked_) return;
    wrong_ = "a counter of " + std::to_string(min) + " to " + std::to_string(asked_) +
             " is told as " + (reply.is_error() ? reply.text : std::to_string(reply.integer));
  }

  Task<bool> set_both(env::Env& env, RespClient& client, task::CancelToken token) {
    const std::string value = std::string(env.rng().below(3000), 'v') + std::to_string(++values_);
    const std::vector<std::vector<std::string_view>> commands = {{"MULTI"},
                                                                 {"SET", "left", value},
                                                                 {"SET", "right", value},
                                                                 {"EXEC"},
                                                                 {"MGET", "left", "right"}};
    std::string requests;
    for (const auto& args : commands) requests += encode_request(args);
    const Result<void> sent = co_await client.send(requests, token);
    if (!sent) co_return false;
    Value last;
    for (size_t i = 0; i < commands.size(); ++i) {
      Result<Value> reply = co_await client.receive(token);
      if (!reply) co_return false;
      last = std::move(*reply);
    }
    if (last.items.size() != 2 || last.items[0] != last.items[1]) {
      wrong_ = "two keys of one transaction differ";
    }
    co_return true;
  }

  uint64_t asked_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t values_ = 0;
  std::vector<uint64_t> done_;  // steps of each client
  std::string wrong_;
};

TEST(RespFaults, NobodySeesHalfOfAnything) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = "resp"};
  scenario.make = [] { return std::make_unique<RespWorkload>(); };
  scenario.faults.nodes = {"client0", "client1", "client2"};
  scenario.faults.peers = {kServer, "client0", "client1", "client2"};
  scenario.faults.kinds = {Kind::kCrash, Kind::kKill,  Kind::kPause,     Kind::kClog,
                           Kind::kReset, Kind::kReset, Kind::kPartition, Kind::kPartitionOneWay};
  scenario.faults.count_max = 8;
  scenario.fault_phase = 6_s;
  scenario.healed_phase = 100_s;
  scenario.progress_healed = 50;
  scenario.seeds = 20;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::door_tests
