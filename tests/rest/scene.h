// SPDX-License-Identifier: Apache-2.0
// A server and a host in the simulator, and the drive between them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rest/http_server.h"
#include "rest/rest_drive.h"
#include "stack/stack.h"
#include "task/task.h"
#include "testing/sim_test.h"
#include "testing/stack/files.h"
#include "world/sim/cluster.h"

namespace cairn::rest {

inline constexpr uint16_t kServerPort = 8080;
// The server is the first node of a cluster.
inline constexpr const char* kFolder = "http://10.0.0.1:8080/v";

// Opens leaves that are endpoints; services get a key.
class RestLeaves final : public drive::Leaves {
 public:
  std::expected<drive::FileContent, std::string> read_file(const std::string&) override {
    return drive::FileContent(as_bytes(drive::testing_key(1)));
  }
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    std::expected<Endpoint, std::string> endpoint = Endpoint::parse(text);
    if (!endpoint) co_return std::unexpected(endpoint.error());
    Leaf leaf = co_await RestDrive::open(env, std::move(*endpoint));
    co_return leaf;
  }
};

inline sim::Node& start_server(sim::Cluster& cluster, HttpServer& server) {
  sim::Node& node = cluster.node("server");
  node.start(
      [&server, at = node.address(kServerPort)](env::Env& env) { return server.run(env, at); });
  return node;
}

// Runs `body(env)` or `body(env, server)` on the host to its end.
template <class Body>
void with_server(HttpServer& server, Body body) {
  sim::Cluster cluster;
  start_server(cluster, server);
  sim::Node& host = cluster.node("host");
  host.start([&](env::Env& env) {
    if constexpr (std::is_invocable_v<Body, env::Env&, HttpServer&>) {
      return body(env, server);
    } else {
      return body(env);
    }
  });
  ASSERT_TRUE(cluster.run_until([&] { return !host.is_running(); }, 1000_s)) << cluster.report();
}

// kFolder with these options, or a failed test.
inline task::Task<std::unique_ptr<drive::Drive>> must_open(env::Env& env, std::string options) {
  RestLeaves leaves;
  drive::Leaves::Leaf drive = co_await leaves.open(env, kFolder + options);
  if (!drive) ADD_FAILURE() << drive.error();
  co_return drive ? std::move(*drive) : nullptr;
}

// Why it does not open; empty: it does.
inline task::Task<std::string> why_not(env::Env& env, std::string options) {
  RestLeaves leaves;
  drive::Leaves::Leaf drive = co_await leaves.open(env, kFolder + options);
  if (!drive) co_return drive.error();
  co_await (*drive)->close();
  co_return "";
}

inline std::vector<std::byte> filled(uint8_t value, size_t bytes) {
  return std::vector<std::byte>(bytes, std::byte{value});
}

inline uint64_t fact(const drive::Drive& drive, std::string_view name) {
  for (const drive::Fact& fact : drive.facts()) {
    if (fact.name == name) return fact.value;
  }
  ADD_FAILURE() << "no fact " << name;
  return 0;
}

}  // namespace cairn::rest
