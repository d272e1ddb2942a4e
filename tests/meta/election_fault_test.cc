// SPDX-License-Identifier: Apache-2.0
// Elections while the store's server and the candidates crash, stand still and lose each other,
// with clocks that run apart: at no moment do two believe that they lead, and tokens only grow.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/rng.h"
#include "meta/election.h"
#include "meta/local_store.h"
#include "meta/remote_store.h"
#include "meta/server.h"
#include "meta/state.h"
#include "task/deadline.h"
#include "task/either.h"
#include "task/sync.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::meta_tests {
namespace {

using env::Env;
using meta::Leadership;
using meta::Revision;
using task::Task;

constexpr uint16_t kPort = 4431;

// What the outside world sees of all candidates at once.
struct Board {
  std::map<std::string, const Leadership*> leaders;
  Revision newest;
  uint64_t terms = 0;
  std::string mistake;

  void elected(const std::string& name, const Leadership& leader) {
    for (const auto& [other, leads] : leaders) {
      if (leads->is_leader()) mistake = other + " still leads when " + name + " is elected";
    }
    if (leader.fencing() <= newest) mistake = name + " has an old token";
    newest = leader.fencing();
    leaders[name] = &leader;
    ++terms;
  }
};

Task<void> serve(Env& env, env::Address at, meta::State& state) {
  const std::unique_ptr<meta::Store> store = meta::local_store(env, state);
  meta::Server server(env, *store);
  if (server.listen(at)) {
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  }
  co_await server.close();
  co_await store->close();
}

// Leads for a while, or until it does not any more, and stands again.
Task<void> stand(Env& env, env::Address server, std::string name, Board& board) {
  const std::unique_ptr<meta::Store> store = meta::remote_store(env, {.servers = {server}});
  meta::Election election(env, *store, {.key = "leader", .value = name, .ttl = 2_s});
  while (!env.stop_token().requested()) {
    Result<std::unique_ptr<Leadership>> leads = co_await election.campaign(env.stop_token());
    if (!leads) continue;
    if ((*leads)->is_leader()) board.elected(name, **leads);
    const Duration term{static_cast<int64_t>(env.rng().below((3_s).ns))};
    task::Either both(env.stop_token(), (*leads)->lost_token());
    [[maybe_unused]] const Result<void> over = co_await task::sleep_for(env, term, both.token());
    board.leaders.erase(name);
    co_await (*leads)->resign();
  }
  co_await store->close();
}

class ElectionWorkload final : public sim::Workload {
 public:
  void start(sim::Cluster& cluster) override {
    sim::Node& server = cluster.node("server");
    const env::Address at = server.address(kPort);
    server.start([this, at](Env& env) { return serve(env, at, state_); });
    int32_t drift_ppm = -2000;
    for (const char* name : {"a", "b", "c"}) {
      sim::NodeOptions options;
      options.clock.drift_ppm = drift_ppm += 1000;
      cluster.node(name, options).start([this, at, name](Env& env) {
        return stand(env, at, name, board_);
      });
    }
  }
  uint64_t progress() const override { return board_.terms; }
  std::string check(sim::Cluster&) override { return board_.mistake; }

 private:
  meta::State state_;
  Board board_;
};

TEST(ElectionScenario, NeverHasTwoLeaders) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = "election"};
  scenario.make = [] { return std::make_unique<ElectionWorkload>(); };
  scenario.faults.nodes = {"server", "a", "b", "c"};
  scenario.faults.kinds = {Kind::kCrash, Kind::kKill,      Kind::kPause,   Kind::kClockStep,
                           Kind::kClog,  Kind::kPartition, Kind::kIsolate, Kind::kPartitionOneWay,
                           Kind::kReset};
  scenario.faults.duration_max = 6_s;
  scenario.fault_phase = 30_s;
  scenario.progress_healed = 5;
  scenario.seeds = 30;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::meta_tests
