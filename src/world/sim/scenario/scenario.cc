// SPDX-License-Identifier: Apache-2.0
#include "world/sim/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "world/sim/cluster.h"
#include "world/sim/event_queue.h"
#include "world/sim/options.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/fork_testing.h"
#include "world/sim/scenario/minimise.h"

namespace cairn::sim {

namespace {

constexpr Duration kCheckEvery = 100_ms;

Rng rng_of(uint64_t seed, const char* purpose) { return Rng(mix64(seed) ^ hash_text(purpose)); }

std::optional<uint64_t> environment_number(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return std::nullopt;
  const std::string_view text(value);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  CHECK(error == std::errc{} && end == text.data() + text.size(),
        "CAIRN_SEED, CAIRN_SEEDS, CAIRN_TURN and CAIRN_FORK are numbers");
  return number;
}

// Runs on for so long, checking; the first complaint ends it.
std::string run_checked(Cluster& cluster, Workload& workload, Duration duration,
                        const std::function<bool()>& is_enough) {
  const Time end = cluster.now() + duration;
  while (cluster.now() < end && !is_enough()) {
    cluster.run_for(std::min(kCheckEvery, end - cluster.now()));
    if (std::string wrong = workload.check(cluster); !wrong.empty()) return wrong;
  }
  return {};
}

std::string run_phases(const Scenario& scenario, Cluster& cluster, Workload& workload,
                       const FaultPlan& plan) {
  workload.start(cluster);
  apply_plan(cluster, plan);
  const auto never = [] { return false; };
  std::string wrong = run_checked(cluster, workload, scenario.fault_phase, never);
  if (!wrong.empty()) return wrong;

  cluster.recover();
  const uint64_t before = workload.progress();
  const auto went_on = [&] { return workload.progress() >= before + scenario.progress_healed; };
  wrong = run_checked(cluster, workload, scenario.healed_phase, went_on);
  if (!wrong.empty()) return wrong;
  if (!went_on()) {
    return fmt::format("no progress after healing: {} done before, {} after {}", before,
                       workload.progress(), text(scenario.healed_phase));
  }
  wrong = workload.check_healed(cluster);
  if (!wrong.empty()) return wrong;

  for (Node* node : cluster.nodes()) node->stop();
  const auto has_ended = [&] {
    return std::ranges::none_of(cluster.nodes(), [](Node* node) { return node->is_running(); });
  };
  if (cluster.run_until(has_ended, scenario.stop_limit)) return {};
  for (Node* node : cluster.nodes()) {
    if (node->is_running()) wrong += (wrong.empty() ? "" : ", ") + node->name();
  }
  return fmt::format("did not end {} after the stop: {}", text(scenario.stop_limit), wrong);
}

// A run in a child: its failure, or its hash.
struct ChildRun {
  bool has_failed = false;
  std::string hash;
  std::string story;  // of a failure: what, and the trace
};

ChildRun run_in_child(const Scenario& scenario, uint64_t seed, const FaultPlan& plan) {
  const auto run = [&]() -> std::string {
    const RunResult result = run_once(scenario, seed, plan);
    if (result.failure.empty()) return fmt::format("passed {:016x}", result.trace_hash);
    return result.failure + "\n" + result.report;
  };
  const bool forks = environment_number("CAIRN_FORK").value_or(1) != 0;
  const ForkedResult result = forks ? run_forked(run) : ForkedResult{true, run(), ""};
  ChildRun child;
  child.has_failed = !result.has_ended_well || !result.answer.starts_with("passed ");
  if (child.has_failed) {
    child.story = result.has_ended_well ? result.answer : result.errors;
  } else {
    child.hash = result.answer.substr(7);
  }
  return child;
}

std::string explain(const Scenario& scenario, uint64_t seed, const FaultPlan& plan,
                    const ChildRun& failed) {
  std::string story = fmt::format("scenario {}: seed {} fails\n", scenario.name, seed);
  story += fmt::format("repeat with: CAIRN_SEED={}\n", seed);
  story += fmt::format("faults drawn ({}):\n{}", plan.size(), text(plan));
  FaultPlan smallest = plan;
  size_t runs = 0;
  if (environment_number("CAIRN_FORK").value_or(1) != 0) {
    smallest = minimise(plan, [&](const FaultPlan& trial) {
      ++runs;
      return run_in_child(scenario, seed, trial).has_failed;
    });
  }
  const ChildRun last = smallest == plan ? failed : run_in_child(scenario, seed, smallest);
  story += fmt::format("smallest plan that still fails ({} of {} faults, {} runs):\n{}",
                       smallest.size(), plan.size(), runs, text(smallest));
  story += "its failure: " + last.story;
  return story;
}

}  // namespace

std::vector<uint64_t> seeds_to_run(uint64_t count, uint64_t first) {
  if (const auto only = environment_number("CAIRN_SEED")) return {*only};
  std::vector<uint64_t> seeds(environment_number("CAIRN_SEEDS").value_or(count));
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

std::vector<uint64_t> seeds_of_subject(const std::string& subject, uint64_t count, uint64_t turns) {
  if (environment_number("CAIRN_SEED")) return seeds_to_run(1);
  const uint64_t turn = environment_number("CAIRN_TURN").value_or(0) % turns;
  const uint64_t from = hash_text(subject.c_str()) % kSeedPool + turn * count;
  std::vector<uint64_t> seeds = seeds_to_run(count, from);
  for (uint64_t& seed : seeds) seed = 1 + seed % kSeedPool;
  return seeds;
}

void draw_options(ClusterOptions& options, Rng& rng) {
  const auto sometimes = [&](double max) { return rng.bernoulli(0.5) ? max * rng.uniform() : 0.0; };
  NetworkFaults& network = options.network.faults;
  network.segment = sometimes(1.0);
  network.delay = sometimes(0.05);
  network.clog = sometimes(0.001);
  network.reset = sometimes(0.0005);
  network.accept_limit = sometimes(0.05);
  DiskFaults& disk = options.disk.faults;
  disk.slow = sometimes(0.05);
  disk.stall = sometimes(0.0005);
  options.network.jitter_max = {static_cast<int64_t>(rng.below((200_us).ns))};
  options.wake_delay_max = {static_cast<int64_t>(rng.bernoulli(0.5) ? rng.below((5_us).ns) : 0)};
}

FaultPlan plan_of(const Scenario& scenario, uint64_t seed) {
  Rng rng = rng_of(seed, "plan");
  return draw_plan(scenario.faults, scenario.fault_phase, rng);
}

RunResult run_once(const Scenario& scenario, uint64_t seed, const FaultPlan& plan) {
  ClusterOptions options = scenario.options;
  options.seed = seed;
  Rng rng = rng_of(seed, "options");
  if (scenario.draw) {
    scenario.draw(options, rng);
  } else {
    draw_options(options, rng);
  }
  const std::unique_ptr<Workload> workload = scenario.make();
  Cluster cluster(options);
  RunResult result;
  result.failure = run_phases(scenario, cluster, *workload, plan);
  if (!result.failure.empty()) result.report = cluster.report();
  result.trace_hash = cluster.trace_hash();
  return result;
}

std::string run_scenario(const Scenario& scenario) {
  const std::vector<uint64_t> seeds = seeds_to_run(scenario.seeds, scenario.first_seed);
  for (const uint64_t seed : seeds) {
    const FaultPlan plan = plan_of(scenario, seed);
    const ChildRun run = run_in_child(scenario, seed, plan);
    std::string story;
    if (run.has_failed) {
      story = explain(scenario, seed, plan, run);
    } else if (seed == seeds.front() && run_in_child(scenario, seed, plan).hash != run.hash) {
      story = fmt::format("scenario {}: seed {} gives two different runs\n", scenario.name, seed);
    }
    if (story.empty()) continue;
    std::fputs(story.c_str(), stderr);
    return story;
  }
  return {};
}

}  // namespace cairn::sim
