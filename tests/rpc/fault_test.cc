// SPDX-License-Identifier: Apache-2.0
// Calls and pushes while both sides crash and the network between them fails, seed by seed: what
// was answered was done, what was tried once was done at most once, and pushes have no gaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rpc/test_service.h"
#include "task/gate.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::rpc_tests {
namespace {

constexpr uint16_t kPort = 4440;
constexpr std::array kClients = {"a", "b"};

Task<void> serve(Env& env, env::Address at, std::map<std::string, uint64_t>& counts) {
  TestService service(env);
  service.counts = &counts;
  rpc::Server server(env, service);
  if (server.listen(at)) {
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  }
  co_await server.close();
}

// What the outside world knows of a client; a crash does not touch it.
struct Known {
  uint64_t tried = 0;  // calls that add; each has a body of its own
  uint64_t answered = 0;
  uint64_t echoed = 0;
  uint64_t pushes = 0;
  std::string mistake;
};

Task<void> add(Env& env, rpc::Client& client, std::string name, Known& known) {
  while (!env.stop_token().requested()) {
    const std::string body = name + "/" + std::to_string(++known.tried);
    const Result<Reply> reply = co_await client.call({.method = TestMethods::kAdd, .body = body},
                                                     within(2_s), env.stop_token());
    if (reply && !reply->refusal) ++known.answered;
    if (reply && !reply->refusal && reply->body != body) known.mistake = "another's reply";
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, 3_ms, env.stop_token());
  }
}

// Several at once of different sizes, each to be answered with itself.
Task<void> echo(Env& env, rpc::Client& client, size_t size, Known& known) {
  for (uint64_t round = 0; !env.stop_token().requested(); ++round) {
    const std::string body = std::to_string(round) + std::string(size, 'x');
    const Result<Reply> reply = co_await client.call(
        {.method = TestMethods::kEcho, .body = body},
        {.repeatable = true, .timeout = 5_s, .attempt_timeout = 1_s}, env.stop_token());
    if (reply && !reply->refusal) ++known.echoed;
    if (reply && !reply->refusal && reply->body != body) known.mistake = "another's echo";
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, 2_ms, env.stop_token());
  }
}

Task<void> take_pushes(Env& env, rpc::Client& client, Known& known) {
  while (!env.stop_token().requested()) {
    auto subscription =
        co_await client.subscribe({.method = TestMethods::kCount, .body = "1"}, env.stop_token());
    for (uint64_t expected = 1; subscription; ++expected) {
      const Result<Reply> push = co_await (*subscription)->next(env.stop_token());
      if (!push || push->refusal) break;
      if (push->body != std::to_string(expected)) known.mistake = "a gap in pushes";
      ++known.pushes;
      if (expected == 50) break;
    }
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, 5_ms, env.stop_token());
  }
}

Task<void> use(Env& env, env::Address server, std::string name, Known& known) {
  rpc::Client client(env, test_options(std::move(server)));
  task::Gate gate;
  gate.spawn(add(env, client, name, known));
  gate.spawn(echo(env, client, 10, known));
  gate.spawn(echo(env, client, 100'000, known));
  co_await take_pushes(env, client, known);
  co_await gate.close();
  co_await client.close();
}

class CallsWorkload final : public sim::Workload {
 public:
  void start(sim::Cluster& cluster) override {
    sim::Node& server = cluster.node("server");
    const env::Address at = server.address(kPort);
    server.start([this, at](Env& env) { return serve(env, at, counts_); });
    for (const char* name : kClients) {
      Known& known = known_[name];
      cluster.node(name).start([at, name, &known](Env& env) { return use(env, at, name, known); });
    }
  }
  uint64_t progress() const override {
    uint64_t min = UINT64_MAX;
    for (const auto& [name, known] : known_) {
      min = std::min({min, known.answered, known.echoed, known.pushes});
    }
    return min;
  }
  std::string check(sim::Cluster&) override {
    for (const auto& [body, count] : counts_) {
      if (count != 1) return body + " was carried out more than once";
    }
    uint64_t answered = 0;
    for (const auto& [name, known] : known_) {
      if (!known.mistake.empty()) return name + ": " + known.mistake;
      answered += known.answered;
    }
    return answered <= counts_.size() ? "" : "something was answered that was not done";
  }

 private:
  std::map<std::string, uint64_t> counts_;
  std::map<std::string, Known> known_;
};

TEST(RpcScenario, AnswersAreTrueAndNothingIsDoneTwice) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = "rpc"};
  scenario.make = [] { return std::make_unique<CallsWorkload>(); };
  scenario.faults.nodes = {"server", kClients[0], kClients[1]};
  scenario.faults.kinds = {Kind::kCrash, Kind::kKill,      Kind::kPause,   Kind::kClockStep,
                           Kind::kClog,  Kind::kPartition, Kind::kIsolate, Kind::kPartitionOneWay,
                           Kind::kReset};
  scenario.draw = [](sim::ClusterOptions& options, Rng& rng) {
    sim::draw_options(options, rng);
    options.network.faults.bit_flip = rng.bernoulli(0.3) ? rng.uniform() * 0.001 : 0;
  };
  scenario.seeds = 30;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::rpc_tests
