// SPDX-License-Identifier: Apache-2.0
// Scenario: a workload, its checkers and faults drawn from a seed; many seeds; a failure made
// small.
//
//   TEST(MirrorScenario, SurvivesCrashes) {
//     EXPECT_EQ(run_scenario({.name = "mirror", .make = make_mirror, .faults = {.nodes = {"a"}}}),
//               "");
//   }
//
// A run: options and a fault plan are drawn from the seed; the workload runs while the plan
// happens; then everything heals and work must go on; then all programs are stopped and must end.
// CAIRN_SEED=n runs that seed only, CAIRN_SEEDS=n that many seeds, CAIRN_FORK=0 runs in this
// process, for a debugger.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/scenario/fault_plan.h"

namespace cairn::sim {

// Made for one run. Its programs may refer to it: it outlives the cluster.
class Workload {
 public:
  virtual ~Workload() = default;

  // Names the nodes and starts their programs.
  virtual void start(Cluster& cluster) = 0;
  // How much was done so far. It has to grow after healing.
  virtual uint64_t progress() const = 0;
  // What must hold at all times: asked every 100 ms. Empty: all is well; else what is wrong.
  virtual std::string check(Cluster&) { return {}; }
  // What must hold in the end, when work went on after healing and before programs are stopped.
  virtual std::string check_healed(Cluster&) { return {}; }
};

struct Scenario {
  std::string name;
  std::function<std::unique_ptr<Workload>()> make;
  FaultMix faults;
  // What is the same in all runs; the seed is set by the runner.
  ClusterOptions options;
  // Changes options at random; null: draw_options.
  std::function<void(ClusterOptions&, Rng&)> draw;

  Duration fault_phase = 10_s;
  Duration healed_phase = 60_s;  // by then progress must have grown by progress_healed
  uint64_t progress_healed = 10;
  Duration stop_limit = 60_s;  // by then programs must have ended
  uint32_t seeds = 20;
  uint64_t first_seed = 1;
};

// Which seeds to run: `count` of them from `first` on, unless CAIRN_SEED or CAIRN_SEEDS say
// otherwise. For tests that make their own clusters.
std::vector<uint64_t> seeds_to_run(uint64_t count, uint64_t first = 1);
// For a test of many subjects, of which each can have only a few: `count` of the seeds 1 to
// kSeedPool, drawn by its name, so that together they have many. CAIRN_TURN=n, modulo `turns`, has
// the n-th `count` from there on, and CAIRN_SEEDS=n the first n. .ci/run has the turn of its
// commit, and so all turns in time; a failure repeats with CAIRN_SEED.
inline constexpr uint64_t kSeedPool = 1000;
inline constexpr uint64_t kSeedTurns = 4;
std::vector<uint64_t> seeds_of_subject(const std::string& subject, uint64_t count,
                                       uint64_t turns = kSeedTurns);

// Each fault of a network and of disks that a correct program survives: off, or at some rate.
void draw_options(ClusterOptions& options, Rng& rng);
// The plan a seed gives.
FaultPlan plan_of(const Scenario& scenario, uint64_t seed);

// One run in this process.
struct RunResult {
  std::string failure;  // empty: passed
  std::string report;   // of a failed run: seed and trace
  uint64_t trace_hash = 0;
};
RunResult run_once(const Scenario& scenario, uint64_t seed, const FaultPlan& plan);

// All seeds, each in a child process; the first one twice, which must give the same trace hash.
// Empty: all passed. Else the report of the first that did not: what failed, the smallest plan that
// still fails, how to repeat it, and the trace of that run. Also printed to standard error.
std::string run_scenario(const Scenario& scenario);

}  // namespace cairn::sim
