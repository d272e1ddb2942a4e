// SPDX-License-Identifier: Apache-2.0
// Two clients write two volumes over five drives, with two arbiters and a metadata server, while
// all of them fail: what was flushed is there, legs are equal when all is healed, and no extent is
// owned twice, lost, or given away with something in it.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/volume/volume_cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::volume_tests {
namespace {

constexpr Duration kFaultPhase = 15_s;

class VolumeWorkload final : public sim::Workload {
 public:
  explicit VolumeWorkload(VolumeCluster::Way way) : cluster_(way) {}
  void start(sim::Cluster& cluster) override {
    rng_ = std::make_unique<Rng>(mix64(cluster.seed()));
    cluster_.put_in_box(static_cast<uint32_t>(cluster.seed() % 2));
    cluster_.start(cluster);
  }
  uint64_t progress() const override { return cluster_.writes(); }
  std::string check(sim::Cluster& cluster) override {
    const Time end = Time{} + kFaultPhase;
    if (cluster.now() >= end) {
      cluster_.heal_drives();
    } else if (cluster.now() > Time{} + 2_s) {
      cluster_.hurt_drives(*rng_);
    }
    return cluster_.failure().empty() ? cluster_.audit(false) : cluster_.failure();
  }
  std::string check_healed(sim::Cluster& cluster) override {
    cluster_.heal_drives();
    cluster_.rest();
    if (!cluster.run_until([this] { return cluster_.is_checked(); }, 120_s)) {
      return "volumes are never healed: " + cluster_.audit(true);
    }
    cluster.run_until([this] { return cluster_.audit(true).empty(); }, 20_s);
    return cluster_.failure().empty() ? cluster_.audit(true) : cluster_.failure();
  }

 private:
  std::unique_ptr<Rng> rng_;
  VolumeCluster cluster_;
};

sim::Scenario scenario_of(const char* name, VolumeCluster::Way way) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = name};
  scenario.make = [way] { return std::make_unique<VolumeWorkload>(way); };
  scenario.faults.nodes = {"store", "arbiter0", "arbiter1", "client0", "client1"};
  scenario.faults.kinds = {Kind::kCrash,     Kind::kKill,  Kind::kPause,
                           Kind::kClockStep, Kind::kClog,  Kind::kPartition,
                           Kind::kIsolate,   Kind::kReset, Kind::kPartitionOneWay};
  scenario.faults.clock_step_max = 300_ms;
  scenario.faults.duration_max = 4_s;
  scenario.fault_phase = kFaultPhase;
  scenario.progress_healed = 50;
  return scenario;
}

TEST(VolumeScenario, NothingThatWasFlushedIsLostAndLegsAreEqualWhenHealed) {
  sim::Scenario scenario = scenario_of("volume", VolumeCluster::Way::kLetters);
  scenario.seeds = 100;
  EXPECT_EQ(run_scenario(scenario), "");
}

// Connections to arbiters are cut, stand still and come back with what was on its way.
TEST(VolumeScenario, TheSameHoldsWhenClientsReachArbitersByRpc) {
  sim::Scenario scenario = scenario_of("volume_rpc", VolumeCluster::Way::kRpc);
  scenario.seeds = 60;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::volume_tests
