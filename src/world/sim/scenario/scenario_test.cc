// SPDX-License-Identifier: Apache-2.0
#include "world/sim/scenario/scenario.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/address.h"
#include "env/disk.h"
#include "env/env.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/minimise.h"
#include "world/sim/testing.h"

namespace cairn::sim {
namespace {

using env::Env;
using task::Task;

// An echo: survives everything.
class Echo : public Workload {
 public:
  void start(Cluster& cluster) override {
    cluster.node("server").start(echo_server(7));
    const env::Address at = cluster.node("server").address(7);
    cluster.node("client").start(echo_client(at, {.size = 500}, stats_));
  }
  uint64_t progress() const override { return stats_.rounds; }
  std::string check(Cluster&) override {
    return stats_.mismatches == 0 ? "" : "an echo differs from what was sent";
  }

 private:
  EchoStats stats_;
};

// A counter on a disk. Says "stored" after a flush, or, with the bug, before it.
struct CounterState {
  bool has_bug = false;
  uint64_t stored = 0;  // what was told to the world
  uint64_t found = 0;   // what a start found on the disk
  bool has_lost = false;
};

Task<bool> store_counter(env::Disk& disk, MutableBytes block, uint64_t value, bool flushes) {
  store(block, value);
  const Result<void> written = co_await disk.write(0, block);
  if (!written || !flushes) co_return written.has_value();
  const Result<void> flushed = co_await disk.flush();
  co_return flushed.has_value();
}

Task<void> count(Env& env, CounterState& state) {
  auto disk = env.open_disk({.path = "counter", .size = 4096, .create = true});
  if (!disk) co_return;
  const Result<Buffer> block = env.buffers().allocate(4096);
  const Result<void> got = co_await (*disk)->read(0, block->bytes());
  if (!got) co_return;
  state.found = load<uint64_t>(block->bytes());
  state.has_lost = state.has_lost || state.found < state.stored;
  for (uint64_t value = state.found + 1; !env.stop_token().requested(); ++value) {
    const bool is_stored = co_await store_counter(**disk, block->bytes(), value, !state.has_bug);
    if (!is_stored) break;
    state.stored = value;
    const Result<void> slept = co_await task::sleep_for(env, 10_ms, env.stop_token());
    if (!slept) break;
  }
}

class Counter : public Workload {
 public:
  explicit Counter(bool has_bug) { state_.has_bug = has_bug; }
  void start(Cluster& cluster) override {
    cluster.node("a").start([this](Env& env) { return count(env, state_); });
    cluster.node("bystander").start(echo_server(7));
  }
  uint64_t progress() const override { return state_.stored; }
  std::string check(Cluster&) override {
    return state_.has_lost ? "the counter forgot what it had stored" : "";
  }

 private:
  CounterState state_;
};

Scenario counter_scenario(bool has_bug) {
  Scenario scenario{.name = "counter"};
  scenario.make = [has_bug] { return std::make_unique<Counter>(has_bug); };
  scenario.faults.nodes = {"a", "bystander"};
  scenario.faults.disks = {{.node = "a", .path = "counter"}};
  return scenario;
}

TEST(Scenario, AnEchoSurvivesEverything) {
  Scenario scenario{.name = "echo"};
  scenario.make = [] { return std::make_unique<Echo>(); };
  scenario.faults.nodes = {"server", "client"};
  scenario.fault_phase = 5_s;
  scenario.seeds = 10;
  EXPECT_EQ(run_scenario(scenario), "");
}

TEST(Scenario, ACorrectCounterSurvivesCrashes) {
  EXPECT_EQ(run_scenario(counter_scenario(false)), "");
}

TEST(Scenario, AFailureIsReducedToTheOneFaultThatCausesIt) {
  testing::internal::CaptureStderr();
  Scenario scenario = counter_scenario(true);
  const std::string story = run_scenario(scenario);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), story);
  EXPECT_NE(story.find("the counter forgot what it had stored"), std::string::npos) << story;
  EXPECT_NE(story.find("(1 of "), std::string::npos) << story;
  const size_t smallest = story.find("smallest plan");
  EXPECT_NE(story.find("crash of a", smallest), std::string::npos) << story;
  EXPECT_NE(story.find("CAIRN_SEED="), std::string::npos);
  EXPECT_NE(story.find("machine.power_loss", smallest), std::string::npos) << "the trace";
}

Task<void> fail_after_pause(Env& env) {
  Time last = env.now();
  while (true) {
    const Result<void> slept = co_await task::sleep_for(env, 10_ms, env.stop_token());
    if (!slept) co_return;
    CHECK(env.now() - last < 15_ms, "nobody ever pauses me");
    last = env.now();
  }
}

class Proud : public Workload {
 public:
  void start(Cluster& cluster) override { cluster.node("a").start(fail_after_pause); }
  uint64_t progress() const override { return 0; }
};

TEST(Scenario, AFailedCheckInAProgramIsAFailureToo) {
  Scenario scenario{.name = "proud"};
  scenario.make = [] { return std::make_unique<Proud>(); };
  scenario.faults.nodes = {"a"};
  scenario.faults.kinds = {Fault::Kind::kPause, Fault::Kind::kClockStep};
  scenario.progress_healed = 0;
  testing::internal::CaptureStderr();
  const std::string story = run_scenario(scenario);
  testing::internal::GetCapturedStderr();
  EXPECT_NE(story.find("nobody ever pauses me"), std::string::npos) << story;
  EXPECT_NE(story.find("(1 of "), std::string::npos) << story;
  EXPECT_NE(story.find("pause of a"), std::string::npos) << story;
}

TEST(Scenario, TheMinimiserFindsOneCauseAmongTen) {
  const Scenario scenario = counter_scenario(true);
  FaultPlan plan;
  for (int i = 0; i < 9; ++i) {
    const auto kind = i % 2 == 0 ? Fault::Kind::kPause : Fault::Kind::kReset;
    const Duration at = 100_ms + i * 1_s;
    plan.push_back({.kind = kind, .node = "a", .other = "bystander", .at = at, .duration = 300_ms});
  }
  const Fault cause{
      .kind = Fault::Kind::kCrash, .node = "a", .other = {}, .at = 5_s, .duration = 1_s};
  plan.insert(plan.begin() + 5, cause);
  uint64_t seed = 1;
  const auto fails = [&](const FaultPlan& trial) {
    return !run_once(scenario, seed, trial).failure.empty();
  };
  while (!fails(plan)) ASSERT_LT(++seed, 20u) << "a crash does not always lose something";
  EXPECT_EQ(minimise(plan, fails), FaultPlan{cause});
}

class Idle : public Workload {
 public:
  void start(Cluster& cluster) override { cluster.node("a").start(echo_server(1)); }
  uint64_t progress() const override { return 0; }
};

TEST(Scenario, NoProgressAfterHealingIsAFailure) {
  Scenario scenario{.name = "idle"};
  scenario.make = [] { return std::make_unique<Idle>(); };
  const RunResult result = run_once(scenario, 1, {});
  EXPECT_NE(result.failure.find("no progress after healing"), std::string::npos);
  EXPECT_NE(result.report.find("seed 1"), std::string::npos);
}

TEST(Scenario, OneSeedOrManyByEnvironment) {
  Scenario scenario = counter_scenario(false);
  scenario.fault_phase = 100_ms;
  int made = 0;
  scenario.make = [&made] {
    ++made;
    return std::make_unique<Counter>(false);
  };
  const auto runs = [&] {
    made = 0;
    EXPECT_EQ(run_scenario(scenario), "");
    return made;
  };
  ::setenv("CAIRN_FORK", "0", 1);
  ::setenv("CAIRN_SEEDS", "3", 1);
  EXPECT_EQ(runs(), 4) << "three seeds, the first twice";
  EXPECT_EQ(seeds_to_run(100, 7), (std::vector<uint64_t>{7, 8, 9}));
  ::setenv("CAIRN_SEED", "12", 1);
  EXPECT_EQ(runs(), 2);
  ::unsetenv("CAIRN_SEED");
  ::unsetenv("CAIRN_SEEDS");
  ::unsetenv("CAIRN_FORK");
}

TEST(Seeds, OfASubjectAreOthersInEachTurnAndThenTheSameAgain) {
  const auto in_turn = [](const char* turn) {
    ::setenv("CAIRN_TURN", turn, 1);
    return seeds_of_subject("mirror", 3);
  };
  std::vector<uint64_t> all;
  for (const char* turn : {"0", "1", "2", "3"}) {
    for (const uint64_t seed : in_turn(turn)) all.push_back(seed);
  }
  EXPECT_EQ(in_turn("11"), in_turn("3"));
  ::setenv("CAIRN_SEED", "77", 1);
  EXPECT_EQ(in_turn("5"), std::vector<uint64_t>{77});
  ::unsetenv("CAIRN_SEED");
  ::unsetenv("CAIRN_TURN");
  ::setenv("CAIRN_SEEDS", "12", 1);
  EXPECT_EQ(seeds_of_subject("mirror", 3), all) << "all turns at once";
  EXPECT_NE(seeds_of_subject("parity", 3), all);
  ::unsetenv("CAIRN_SEEDS");
  const std::set<uint64_t> different(all.begin(), all.end());
  EXPECT_EQ(different.size(), 12U);
  EXPECT_GE(*different.begin(), 1U);
  EXPECT_LE(*different.rbegin(), kSeedPool);
}

TEST(FaultPlan, DrawsOnlyWhatItHasTargetsFor) {
  Rng rng(1);
  const FaultMix alone{.nodes = {"a"}, .count_max = 50};
  for (int i = 0; i < 20; ++i) {
    for (const Fault& fault : draw_plan(alone, 10_s, rng)) {
      EXPECT_EQ(fault.node, "a");
      EXPECT_TRUE(fault.other.empty()) << fault.text();
      EXPECT_LE(fault.at + fault.duration, 10_s);
    }
  }
  EXPECT_TRUE(draw_plan({}, 10_s, rng).empty());
}

TEST(FaultPlan, ReadsAsSentences) {
  const Fault fault{.kind = Fault::Kind::kPartition,
                    .node = "a",
                    .other = "b",
                    .at = 1500_ms,
                    .duration = 200_ms};
  EXPECT_EQ(fault.text(), "at 1.5 s: partition of a and b for 200 ms");
}

}  // namespace
}  // namespace cairn::sim
