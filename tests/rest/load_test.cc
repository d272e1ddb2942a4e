// SPDX-License-Identifier: Apache-2.0
// Every kind of request at random, with power losses of the host, faults of the network and a
// server that fails now and then: the drive keeps its blocks. Alone, and under every service.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "rest/scene.h"
#include "stack/services.h"
#include "testing/stack/stack_load.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::rest {
namespace {

struct Setting {
  std::string name;
  std::string stack;
  ServerHabits habits;
  bool has_faults = false;
  Duration stall{};  // of some requests, beyond their deadline
};

std::string place(const std::string& folder, const std::string& options) {
  return "http://10.0.0.1:8080/" + folder + "?size=4M" + options;
}

class RestLoad : public testing::TestWithParam<Setting> {};

TEST_P(RestLoad, KeepsItsBlocks) {
  for (const uint64_t seed : sim::seeds_to_run(2)) {
    HttpServer server(GetParam().habits);
    RestLeaves leaves;
    stack::StackLoad load({.stack = GetParam().stack, .requests = 200, .leaves = &leaves});
    Rng rng(seed);
    sim::ClusterOptions options{.seed = seed};
    if (GetParam().has_faults) {
      options.network.faults.segment = 0.2;
      options.network.faults.delay = 0.02;
      options.network.faults.reset = 0.002;
      server.trouble = [&rng](const ServedRequest&) {
        Trouble trouble;
        if (rng.below(100) < 4) trouble.delay = GetParam().stall;
        if (rng.below(100) < 2) trouble.status = 503;
        if (rng.below(100) < 2) trouble.cut = rng.below(400);
        return trouble;
      };
    }
    sim::Cluster cluster(options);
    start_server(cluster, server);
    sim::Node& host = cluster.node("host");
    host.start([&load](env::Env& env) { return load.live(env); });
    for (int life = 0; life < 3 && load.failure().empty(); ++life) {
      const uint64_t target = load.done() + rng.below(200);
      const uint64_t finished = load.finished();
      const auto is_time = [&] { return load.done() >= target || !host.is_running(); };
      ASSERT_TRUE(cluster.run_until(is_time, 1000_s)) << cluster.report();
      if (load.finished() == finished) {
        host.crash();
        load.crashed();
        cluster.run_for(1_s);
      }
      const auto has_ended = [&] { return !host.is_running(); };
      ASSERT_TRUE(cluster.run_until(has_ended, 1000_s)) << cluster.report();
      host.restart();
    }
    ASSERT_TRUE(cluster.run_until([&] { return !host.is_running(); }, 1000_s)) << cluster.report();
    EXPECT_EQ(load.failure(), "") << cluster.report();
    EXPECT_GT(load.done(), 0u);
  }
}

std::vector<Setting> settings() {
  const ServerHabits like_nginx{.conditions = false, .etags_on_put = false};
  const ServerHabits simple{.conditions = false, .ranges = false, .chunked = true};
  std::vector<Setting> all = {
      {"alone", place("v", ""), {}},
      {"with_faults", place("v", "&retries=10"), {}, true},
      // What was given up lands before the next life of the host begins.
      {"with_stalls", place("v", "&object=16K&retries=10&timeout_ms=300"), {}, true, 700_ms},
      {"like_nginx", place("v", "&object=16K&retries=10"), like_nginx, true},
      {"simple", place("v", "&block=512"), simple},
  };
  for (const drive::Service* service : drive::services()) {
    if (!service->leaf_only.empty()) continue;
    int leaves = 0;
    const auto leaf = [&leaves] { return place(fmt::format("d{}", leaves++), ""); };
    all.push_back({"under_" + std::string(service->name), drive::example_over(*service, leaf), {}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Settings, RestLoad, testing::ValuesIn(settings()),
                         [](const testing::TestParamInfo<Setting>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace cairn::rest
