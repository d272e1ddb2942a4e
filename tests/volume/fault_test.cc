// SPDX-License-Identifier: Apache-2.0
// Two clients write two volumes over five drives, with two arbiters and a metadata server, while
// all of them fail: what was flushed is there, legs are equal when all is healed, and no extent is
// owned twice, lost, or given away with something in it. Snapshots are taken, cloned and destroyed
// all the while, and hold what they held.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/volume/volume_cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::volume_tests {
namespace {

constexpr Duration kFaultPhase = 15_s;
constexpr Duration kLongFaultPhase = 40_s;  // several leases

// What is lost for long: single drives, or boxes with those who use them.
enum class Losses : uint8_t { kDrives, kBoxes };

class VolumeWorkload final : public sim::Workload {
 public:
  VolumeWorkload(VolumeCluster::Way way, Losses losses, uint64_t& unfenced_openings)
      : losses_(losses), unfenced_openings_(unfenced_openings), cluster_(way) {}
  void start(sim::Cluster& cluster) override {
    rng_ = std::make_unique<Rng>(mix64(cluster.seed()));
    cluster_.put_in_box(static_cast<uint32_t>(cluster.seed() % 2));
    cluster_.start(cluster);
  }
  uint64_t progress() const override { return cluster_.writes(); }
  std::string check(sim::Cluster& cluster) override {
    const Time end = Time{} + (losses_ == Losses::kBoxes ? kLongFaultPhase : kFaultPhase);
    if (cluster.now() >= end) {
      cluster_.faults().heal();
    } else if (cluster.now() > Time{} + 2_s) {
      cluster_.faults().hurt(*rng_);
      if (losses_ == Losses::kBoxes) cluster_.faults().lose_boxes(cluster, *rng_);
    }
    return cluster_.failure().empty() ? cluster_.audit(false) : cluster_.failure();
  }
  std::string check_healed(sim::Cluster& cluster) override {
    cluster_.faults().heal();
    // What faults left no time for.
    const auto has_all = [this] {
      const ClusterFacts& done = cluster_.facts();
      return std::min({done.snapshots_made, done.snapshots_read, done.cloned, done.unshared}) > 1;
    };
    if (!cluster.run_until(has_all, 120_s)) return "snapshots cannot be made, read or cloned";
    cluster_.rest();
    if (!cluster.run_until([this] { return cluster_.is_checked(); }, 120_s)) {
      return "volumes are never healed: " + cluster_.audit(true);
    }
    cluster.run_until([this] { return cluster_.audit(true).empty(); }, 20_s);
    unfenced_openings_ += cluster_.unfenced_openings();
    if (!cluster_.failure().empty()) return cluster_.failure();
    if (std::string wrong = cluster_.audit(true); !wrong.empty()) return wrong;
    // What volumes, snapshots and clones had is free again, to the last extent.
    cluster_.destroy_all();
    if (!cluster.run_until([this] { return cluster_.is_all_free(); }, 60_s)) {
      return "extents are not free when all volumes are gone";
    }
    return cluster_.audit(false);
  }

 private:
  const Losses losses_;
  uint64_t& unfenced_openings_;
  std::unique_ptr<Rng> rng_;
  VolumeCluster cluster_;
};

sim::Scenario scenario_of(const char* name, VolumeCluster::Way way, uint64_t& unfenced_openings,
                          Losses losses = Losses::kDrives) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = name};
  scenario.make = [way, losses, &unfenced_openings] {
    return std::make_unique<VolumeWorkload>(way, losses, unfenced_openings);
  };
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
  uint64_t unfenced_openings = 0;
  sim::Scenario scenario = scenario_of("volume", VolumeCluster::Way::kLetters, unfenced_openings);
  scenario.seeds = 100;
  EXPECT_EQ(run_scenario(scenario), "");
}

// Connections to arbiters are cut, stand still and come back with what was on its way.
TEST(VolumeScenario, TheSameHoldsWhenClientsReachArbitersByRpc) {
  uint64_t unfenced_openings = 0;
  sim::Scenario scenario = scenario_of("volume_rpc", VolumeCluster::Way::kRpc, unfenced_openings);
  scenario.seeds = 60;
  EXPECT_EQ(run_scenario(scenario), "");
}

// Boxes stay away for longer than leases, or where no arbiter reaches them, and clients die with
// them: who opens the volume next does so while its former holder may still write there.
TEST(VolumeScenario, TheSameHoldsWhenClientsDieTogetherWithBoxes) {
  uint64_t unfenced_openings = 0;
  sim::Scenario scenario =
      scenario_of("volume_boxes", VolumeCluster::Way::kLetters, unfenced_openings, Losses::kBoxes);
  scenario.fault_phase = kLongFaultPhase;
  scenario.seeds = 40;
  EXPECT_EQ(run_scenario(scenario), "");
  // Seeds run in processes of their own; this one sees what it runs itself.
  for (uint64_t seed = 1; seed <= 10 && unfenced_openings == 0; ++seed) {
    EXPECT_EQ(sim::run_once(scenario, seed, sim::plan_of(scenario, seed)).failure, "");
  }
  EXPECT_GT(unfenced_openings, 0U) << "no opening met a drive that nobody was fenced at";
}

}  // namespace
}  // namespace cairn::volume_tests
