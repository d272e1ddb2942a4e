// SPDX-License-Identifier: Apache-2.0
// Two who make and give back drives all the time, while boxes, the metadata store, the network and
// they themselves fail: no space is given twice, none is lost, and no drive loses a leg.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rack/pledge.h"
#include "task/deadline.h"
#include "tests/rack/rack.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::rack_tests {
namespace {

using env::Env;
using task::Task;

struct Known {
  uint64_t made = 0;
  uint64_t given_back = 0;
  bool is_quiet = false;
};

Task<void> make_one(Tenant& tenant, Known& known) {
  Rng& rng = tenant.env.rng();
  const std::string name = "drive" + std::to_string(rng.below(6));
  const rack::Raid raid = rng.bernoulli(0.5) ? rack::Raid::kMirror : rack::Raid::kStripe;
  const uint64_t mib = 1 + rng.below(4);
  const rack::Outcome<rack::DriveRecord> made = co_await tenant.create(name, raid, mib);
  if (made) ++known.made;
}

Task<void> give_one_back(Tenant& tenant, Known& known) {
  const Result<rack::Drives> all =
      co_await rack::list_drives(*tenant.store, tenant.env.stop_token());
  if (!all || all->drives.empty()) co_return;
  const std::string name = all->drives[tenant.env.rng().below(all->drives.size())].name;
  const rack::Release how =
      tenant.env.rng().bernoulli(0.5) ? rack::Release::kByForce : rack::Release::kUnused;
  const rack::Outcome<void> released = co_await tenant.release(name, how);
  if (released) ++known.given_back;
}

Task<void> work(Env& env, env::Address store, Known& known) {
  Tenant tenant(env, store);
  while (!env.stop_token().requested()) {
    if (!known.is_quiet) {
      if (env.rng().bernoulli(0.55)) {
        co_await make_one(tenant, known);
      } else {
        co_await give_one_back(tenant, known);
      }
    }
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, 20_ms, env.stop_token());
  }
  co_await tenant.store->close();
}

class RackWorkload final : public sim::Workload {
 public:
  void start(sim::Cluster& cluster) override {
    rack_.box("box0", 12);
    rack_.box("box1", 9);
    rack_.box("box2", 7);
    rack_.start(cluster);
    const env::Address store = rack_.store_address(cluster);
    for (const char* name : {"a", "b"}) {
      Known& known = known_[name];
      cluster.node(name).start([store, &known](Env& env) { return work(env, store, known); });
    }
  }
  uint64_t progress() const override {
    uint64_t min = ~uint64_t{0};
    for (const auto& [name, known] : known_) min = std::min({min, known.made, known.given_back});
    return min;
  }
  std::string check(sim::Cluster&) override { return rack_.check(); }
  // Everybody rests, and after the longest term the books agree.
  std::string check_healed(sim::Cluster& cluster) override {
    for (auto& [name, known] : known_) known.is_quiet = true;
    cluster.run_until([this] { return rack_.audit().empty(); }, 60_s);
    cluster.run_for(2 * kTerm);
    return rack_.audit();
  }

 private:
  Rack rack_;
  std::map<std::string, Known> known_;
};

TEST(RackScenario, NoSpaceIsLostAndNoneGivenTwice) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = "rack"};
  scenario.make = [] { return std::make_unique<RackWorkload>(); };
  scenario.faults.nodes = {"store", "box0", "box1", "box2", "a", "b"};
  scenario.faults.kinds = {Kind::kCrash, Kind::kKill,      Kind::kPause,   Kind::kClockStep,
                           Kind::kClog,  Kind::kPartition, Kind::kIsolate, Kind::kPartitionOneWay,
                           Kind::kReset};
  scenario.faults.clock_step_max = 300_ms;
  scenario.faults.duration_max = 4_s;
  scenario.fault_phase = 20_s;
  scenario.progress_healed = 5;
  scenario.seeds = 30;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::rack_tests
