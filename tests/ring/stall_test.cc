// SPDX-License-Identifier: Apache-2.0
// Disks that answer nothing for longer than a lease, at one node or at all: service comes back by
// itself, what was acknowledged is there, and nothing old is read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kv/chain/client.h"
#include "tests/ring/kv_cluster.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::kv {
namespace {

constexpr Duration kFaultPhase = 12_s;
constexpr Duration kLease = 1_s;  // of KvCluster

sim::ClusterOptions with_blocks(uint64_t seed = 1) {
  sim::ClusterOptions options;
  options.seed = seed;
  options.disk.block_size = 512;
  return options;
}

// Three clients on three keys, whose history is judged in the end.
class StalledDisks : public testing::Test {
 protected:
  StalledDisks()
      : kv_({.nodes = 3, .nodes_first = 3, .clients = 3, .on_disk = true}),
        cluster_(with_blocks()) {
    kv_.start(cluster_);
    EXPECT_TRUE(cluster_.run_until([this] { return kv_.ended() > 200; }, 30_s));
  }
  void stall(size_t number, Duration time) {
    cluster_.node(fmt::format("kv{}", number)).disk("d").stall(time);
  }
  // How many operations ended in so long.
  uint64_t ended_in(Duration time) {
    const uint64_t before = kv_.ended();
    cluster_.run_for(time);
    return kv_.ended() - before;
  }
  bool all_have_leases() const {
    for (size_t i = 0; i < 3; ++i) {
      if (kv_.node(i) == nullptr || !kv_.node(i)->membership().is_held()) return false;
    }
    return true;
  }
  std::vector<ring::Incarnation> incarnations() const {
    std::vector<ring::Incarnation> all;
    for (size_t i = 0; i < 3; ++i) all.push_back(kv_.node(i)->membership().incarnation());
    return all;
  }
  std::string verdict() {
    kv_.rest();
    if (!cluster_.run_until([this] { return kv_.has_rested(); }, 30_s)) return "cannot read";
    cluster_.run_until([this] { return kv_.unrest().empty(); }, 60_s);
    if (std::string unrest = kv_.unrest(); !unrest.empty()) return unrest;
    return kv_.judge();
  }

  KvCluster kv_;
  sim::Cluster cluster_;
};

// A lease needs no disk: nobody is taken out of a chain, and nothing is copied.
TEST_F(StalledDisks, OfAllNodesForLongerThanALeaseHoldUpClientsAndCostNoLease) {
  const std::vector<ring::Incarnation> before = incarnations();
  for (size_t i = 0; i < 3; ++i) stall(i, kLease * 4);
  cluster_.run_for(kLease * 2);
  EXPECT_EQ(ended_in(kLease), 0u);
  EXPECT_TRUE(all_have_leases());
  cluster_.run_for(kLease);
  EXPECT_GT(ended_in(kLease * 5), 50u);
  EXPECT_EQ(incarnations(), before);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(kv_.node(i)->replica().stats().copied, 0u);
  EXPECT_EQ(verdict(), "");
}

TEST_F(StalledDisks, OfOneNodeInTurnHoldUpWritesUntilItGoesOn) {
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    stall(i, kLease * 3);
    cluster_.run_for(kLease * 3);
    EXPECT_GT(ended_in(kLease * 5), 50u);
  }
  EXPECT_EQ(verdict(), "");
}

// The machine of the metadata server stands still as well: all lose their leases at once, keep what
// they know, and go on where they were.
TEST_F(StalledDisks, WithAMetadataServerThatStandsStillTooCostEveryLeaseButNoCopy) {
  const std::vector<ring::Incarnation> before = incarnations();
  for (size_t i = 0; i < 3; ++i) stall(i, kLease * 4);
  cluster_.node("store").pause();
  cluster_.run_for(kLease * 3);
  EXPECT_FALSE(all_have_leases());
  EXPECT_EQ(ended_in(kLease), 0u);
  cluster_.node("store").resume();
  EXPECT_GT(ended_in(kLease * 6), 50u);
  EXPECT_NE(incarnations(), before);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(kv_.node(i)->replica().stats().copied, 0u);
    EXPECT_EQ(kv_.node(i)->replica().stats().wiped, 0u);
  }
  EXPECT_EQ(verdict(), "");
}

// The same for a server that is dead for a while, and for one that nobody can reach.
TEST_F(StalledDisks, NorDoesAMetadataServerThatWasAwayCostACopy) {
  cluster_.node("store").kill();
  cluster_.run_for(kLease * 3);
  EXPECT_FALSE(all_have_leases());
  cluster_.node("store").restart();
  EXPECT_GT(ended_in(kLease * 6), 50u);
  for (size_t i = 0; i < 3; ++i) cluster_.partition(fmt::format("kv{}", i), "store");
  cluster_.run_for(kLease * 3);
  EXPECT_FALSE(all_have_leases());
  cluster_.heal();
  EXPECT_GT(ended_in(kLease * 10), 50u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(kv_.node(i)->replica().stats().copied, 0u);
  EXPECT_EQ(verdict(), "");
}

class StallWorkload final : public sim::Workload {
 public:
  StallWorkload() : cluster_({.nodes = 3, .nodes_first = 3, .clients = 3, .on_disk = true}) {}
  void start(sim::Cluster& cluster) override { cluster_.start(cluster); }
  uint64_t progress() const override { return cluster_.ended(); }
  // Once in each run all disks stall at once, for longer than a lease.
  std::string check(sim::Cluster& cluster) override {
    if (has_stalled_ || cluster.now() < Time{} + 3_s) return "";
    has_stalled_ = true;
    for (size_t i = 0; i < 3; ++i) {
      cluster.node(fmt::format("kv{}", i)).disk("d").stall(kLease * 3);
    }
    return "";
  }
  std::string check_healed(sim::Cluster& cluster) override {
    cluster_.rest();
    if (!cluster.run_until([this] { return cluster_.has_rested(); }, 60_s)) {
      return "clients cannot read: " + cluster_.unrest();
    }
    cluster.run_until([this] { return cluster_.unrest().empty(); }, 60_s);
    if (std::string unrest = cluster_.unrest(); !unrest.empty()) return unrest;
    return cluster_.judge();
  }

 private:
  KvCluster cluster_;
  bool has_stalled_ = false;
};

TEST(RingScenario, SoDoThreeWhoseDisksStallForLongerThanALease) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = "ring_stall"};
  scenario.make = [] { return std::make_unique<StallWorkload>(); };
  scenario.faults.nodes = {"store", "kv0", "kv1", "kv2"};
  scenario.faults.disks = {
      {.node = "kv0", .path = "d"}, {.node = "kv1", .path = "d"}, {.node = "kv2", .path = "d"}};
  scenario.faults.kinds = {Kind::kDiskStall, Kind::kDiskStall, Kind::kCrash,
                           Kind::kKill,      Kind::kPause,     Kind::kIsolate};
  scenario.faults.duration_max = 4_s;
  scenario.fault_phase = kFaultPhase;
  scenario.progress_healed = 50;
  scenario.options.disk.block_size = 512;
  scenario.seeds = 20;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::kv
