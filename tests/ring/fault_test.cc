// SPDX-License-Identifier: Apache-2.0
// Clients use few hot keys of replicated clusters, while nodes, clients and the metadata server
// fail, nodes join and leave, and stores are lost: what clients saw has an order, no write happens
// twice, and all replicas are equal when all is healed.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/ring/kv_cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::kv {
namespace {

constexpr Duration kFaultPhase = 10_s;

class RingWorkload final : public sim::Workload {
 public:
  explicit RingWorkload(const KvClusterOptions& options) : cluster_(options) {}
  void start(sim::Cluster& cluster) override {
    rng_ = std::make_unique<Rng>(mix64(cluster.seed()));
    cluster_.start(cluster);
  }
  uint64_t progress() const override { return cluster_.ended(); }
  std::string check(sim::Cluster& cluster) override {
    const bool is_early = cluster.now() < Time{} + 1_s;
    if (!is_early && cluster.now() < Time{} + kFaultPhase) cluster_.disturb(cluster, *rng_);
    return "";
  }
  std::string check_healed(sim::Cluster& cluster) override {
    cluster_.start_all(cluster);
    cluster_.rest();
    if (!cluster.run_until([this] { return cluster_.has_rested(); }, 30_s)) {
      return "clients cannot read: " + cluster_.unrest();
    }
    cluster.run_until([this] { return cluster_.unrest().empty(); }, 60_s);
    if (std::string unrest = cluster_.unrest(); !unrest.empty()) return unrest;
    return cluster_.judge();
  }

 private:
  std::unique_ptr<Rng> rng_;
  KvCluster cluster_;
};

sim::Scenario scenario_of(const char* name, const KvClusterOptions& options) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = name};
  scenario.make = [options] { return std::make_unique<RingWorkload>(options); };
  scenario.faults.nodes = {"store"};
  if (!options.proxies)
    scenario.faults.nodes.insert(scenario.faults.nodes.end(), {"client0", "client1"});
  for (size_t i = 0; i < options.nodes_first; ++i) {
    scenario.faults.nodes.push_back("kv" + std::to_string(i));
  }
  scenario.faults.kinds = {Kind::kCrash,     Kind::kKill,  Kind::kPause,
                           Kind::kClockStep, Kind::kClog,  Kind::kPartition,
                           Kind::kIsolate,   Kind::kReset, Kind::kPartitionOneWay};
  scenario.faults.duration_max = 3_s;
  scenario.fault_phase = kFaultPhase;
  scenario.progress_healed = 50;
  return scenario;
}

TEST(RingScenario, ThreeNodesThatFailLoseNothingAndShowNothingOld) {
  sim::Scenario scenario = scenario_of("ring3", {.nodes = 3});
  scenario.seeds = 60;
  EXPECT_EQ(run_scenario(scenario), "");
}

TEST(RingScenario, SoDoFiveThatJoinLeaveAndLoseTheirStores) {
  sim::Scenario scenario = scenario_of("ring5", {.nodes = 5, .loses_stores = true, .leaves = true});
  scenario.seeds = 60;
  EXPECT_EQ(run_scenario(scenario), "");
}

TEST(RingScenario, SoDoThreeWhoseClientsComeThroughThem) {
  sim::Scenario scenario = scenario_of("ring_proxies", {.nodes = 4, .proxies = true});
  scenario.seeds = 60;
  EXPECT_EQ(run_scenario(scenario), "");
}

TEST(RingScenario, SoDoThreeWhoseStoresAreOnDisks) {
  sim::Scenario scenario = scenario_of("ring_disk", {.nodes = 3, .on_disk = true});
  scenario.options.disk.block_size = 512;
  scenario.seeds = 20;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::kv
