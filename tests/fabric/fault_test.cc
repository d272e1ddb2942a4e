// SPDX-License-Identifier: Apache-2.0
// Hosts and a box where everything goes wrong, seed by seed. What was acknowledged and flushed is
// there after a power loss; nothing is read that was not written to its place or that was replaced;
// compare-and-writes happen wholly or not at all; after healing everybody gets on.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/rng.h"
#include "testing/fabric/fabric_workload.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::fabric_tests {
namespace {

using Kind = sim::Fault::Kind;

const std::vector<HostKind> kHosts = {{.name = "plain", .drives = 2},
                                      {.name = "paths", .two_paths = true, .queues = 2},
                                      {.name = "digests", .digests = true, .queues = 2}};

sim::Scenario scenario(const char* name, const std::vector<HostKind>& hosts = kHosts) {
  sim::Scenario scenario{.name = name};
  scenario.make = [&hosts] { return std::make_unique<FabricWorkload>(hosts); };
  scenario.faults.nodes = {kBoxName};
  scenario.faults.peers = {kBoxName};
  for (const HostKind& host : hosts) scenario.faults.peers.emplace_back(host.name);
  scenario.faults.disks = {{.node = kBoxName, .path = kDiskName}};
  scenario.faults.kinds = {Kind::kCrash,     Kind::kCrash,           Kind::kKill,
                           Kind::kPause,     Kind::kClockStep,       Kind::kClog,
                           Kind::kPartition, Kind::kPartitionOneWay, Kind::kIsolate,
                           Kind::kReset,     Kind::kReset,           Kind::kDiskStall,
                           Kind::kDiskFull,  Kind::kDiskReadErrors,  Kind::kDiskWriteErrors};
  scenario.faults.count_max = 8;
  scenario.fault_phase = 6_s;
  scenario.progress_healed = 50;
  scenario.seeds = 50;
  return scenario;
}

// A quarter of the seeds each, so that they can run side by side.
class FabricFaults : public testing::TestWithParam<uint64_t> {};

TEST_P(FabricFaults, LoseNothingThatWasPromised) {
  sim::Scenario each = scenario("fabric");
  each.first_seed = GetParam();
  EXPECT_EQ(run_scenario(each), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, FabricFaults, testing::Values(1, 51, 101, 151),
                         testing::PrintToStringParamName());

// Hosts that die and come back, besides all else.
TEST(FabricHostFaults, LoseNothingThatWasPromised) {
  sim::Scenario each = scenario("fabric hosts");
  for (const HostKind& host : kHosts) each.faults.nodes.emplace_back(host.name);
  each.seeds = 40;
  EXPECT_EQ(run_scenario(each), "");
}

// TCP's checksum lets wrong bits through now and then; with digests they do no harm.
TEST(FabricFlippedBits, AreNoticedAndAskedAgain) {
  static const std::vector<HostKind> kDigests = {
      {.name = "one", .digests = true},
      {.name = "two", .two_paths = true, .digests = true, .queues = 2, .drives = 2}};
  sim::Scenario each = scenario("fabric bits", kDigests);
  each.draw = [](sim::ClusterOptions& options, Rng& rng) {
    sim::draw_options(options, rng);
    options.network.faults.bit_flip = 0.002 * rng.uniform();
  };
  each.seeds = 40;
  EXPECT_EQ(run_scenario(each), "");
}

}  // namespace
}  // namespace cairn::fabric_tests
