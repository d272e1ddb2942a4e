// SPDX-License-Identifier: Apache-2.0
// A service for tests of rpc, and a simulated stage: a node that serves it, and others that call
// it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "env/env.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/service.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/task.h"
#include "world/sim/cluster.h"

namespace cairn::rpc_tests {

using env::Env;
using rpc::MethodCall;
using rpc::Reply;
using task::Task;

// What it can be asked.
struct TestMethods {
  static constexpr uint16_t kEcho = 1;   // the body
  static constexpr uint16_t kWait = 2;   // until it is cancelled
  static constexpr uint16_t kAdd = 3;    // counts the body; only a writer's
  static constexpr uint16_t kSize = 4;   // so many bytes
  static constexpr uint16_t kSleep = 5;  // so many ms, whatever the token says; then the body
  static constexpr uint16_t kCount = 6;  // pushes the numbers from the body on, without end
};

inline uint64_t number_in(const std::string& text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class TestService final : public rpc::Service {
 public:
  explicit TestService(Env& env) : env_(env) {}

  std::string_view name() const override { return "test"; }
  rpc::Version version() const override { return served; }
  std::optional<rpc::Method> find(uint16_t method) const override {
    if (method == 0 || method > TestMethods::kCount) return std::nullopt;
    return rpc::Method{
        .verb = "do it",
        .needs = method == TestMethods::kAdd ? rpc::Role::kWriter : rpc::Role::kReader,
        .pushes = method == TestMethods::kCount};
  }
  Task<Result<std::string>> call(uint16_t method, std::string body, rpc::Caller /*caller*/,
                                 task::CancelToken token) override {
    ++under_way;
    under_way_max = std::max(under_way_max, under_way);
    Result<std::string> reply = body;
    if (method == TestMethods::kWait) {
      task::Event never;
      const Result<void> waited = co_await never.wait(token);
      ends.push_back(waited.error().code());
      reply = fail(waited.error());
    } else if (method == TestMethods::kAdd) {
      if (counts != nullptr) ++(*counts)[body];
    } else if (method == TestMethods::kSize) {
      ++sized;
      reply = std::string(number_in(body), 'x');
    } else if (method == TestMethods::kSleep) {
      [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(
          env_, Duration{static_cast<int64_t>(number_in(body)) * 1'000'000});
    }
    --under_way;
    co_return reply;
  }
  Task<Result<void>> subscribe(uint16_t /*method*/, std::string body, rpc::Caller /*caller*/,
                               rpc::Pushes& pushes, task::CancelToken token) override {
    Result<void> pushed;
    for (uint64_t number = number_in(body); pushed; ++number) {
      pushed = co_await pushes.push(std::to_string(number) + std::string(push_padding, ' '), token);
      if (pushed) ++pushed_count;
    }
    ends.push_back(pushed.error().code());
    co_return pushed;
  }

  rpc::Version served{.major = 3, .minor = 2};
  std::map<std::string, uint64_t>* counts = nullptr;  // of kAdd; outlives it
  std::vector<Errc> ends;                             // how waits and subscriptions ended
  size_t push_padding = 0;
  uint64_t pushed_count = 0;
  size_t sized = 0;  // calls of kSize
  size_t under_way = 0;
  size_t under_way_max = 0;

 private:
  Env& env_;
};

inline rpc::ClientOptions test_options(env::Address at) {
  return {.servers = {std::move(at)},
          .session = {.service = "test", .service_version = {.major = 3, .minor = 5}}};
}

inline rpc::CallOptions within(Duration timeout) { return {.timeout = timeout}; }

class Stage {
 public:
  using Errand = std::function<Task<void>(Env&, rpc::Client&)>;

  explicit Stage(const sim::ClusterOptions& options = {}) : cluster(options) {}
  ~Stage() {
    for (sim::Node* node : cluster.nodes()) {
      if (node->is_running()) node->stop();
    }
    EXPECT_TRUE(cluster.run_until_idle(100_s)) << cluster.report();
  }

  void start_server() {
    cluster.node("server").start([this](Env& env) { return serve(env); });
    cluster.run_for(1_ms);
  }
  // A program on a node of its own, to its end or until time is over.
  void run(const char* node, env::Program program, Duration limit = 100_s) {
    cluster.node(node).start(std::move(program));
    EXPECT_TRUE(cluster.run_until([&] { return !cluster.node(node).is_running(); }, limit))
        << cluster.report();
  }
  void run_client(const char* node, const Errand& errand) {
    run(node, [this, &errand](Env& env) { return use(env, errand); });
  }
  Task<void> use(Env& env, Errand errand) {
    rpc::ClientOptions options = test_options(at);
    if (change_client) change_client(options);
    rpc::Client client(env, std::move(options));
    co_await errand(env, client);
    co_await client.close();
  }

  sim::Cluster cluster;
  env::Address at = cluster.node("server").address(4440);
  rpc::ServerOptions server_options;
  std::function<void(rpc::ClientOptions&)> change_client;
  std::function<void(TestService&)> change_service;
  TestService* service = nullptr;  // while it is served
  std::map<std::string, uint64_t> counts;
  std::vector<std::string> refused;  // whom the server did not like, and why

 private:
  Task<void> serve(Env& env) {
    TestService test(env);
    test.counts = &counts;
    if (change_service) change_service(test);
    rpc::ServerOptions options = server_options;
    options.on_refused = [this](const rpc::RefusedClient& client) {
      refused.push_back(client.why);
    };
    rpc::Server server(env, test, std::move(options));
    service = &test;
    if (server.listen(at)) {
      task::Event never;
      [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
    }
    co_await server.close();
    service = nullptr;
  }
};

}  // namespace cairn::rpc_tests
