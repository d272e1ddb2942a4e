// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/echo_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "world/sim/cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"
#include "world/sim/testing.h"

namespace cairn::apps {

namespace {

constexpr uint16_t kPort = 7;
constexpr const char* kServer = "server";

std::string client_name(int index) { return fmt::format("client{}", index); }

// A server and its clients; what they have done goes to `result`.
class EchoWorkload final : public sim::Workload {
 public:
  EchoWorkload(const EchoRunOptions& options, EchoRunResult& result)
      : options_(options), result_(result), stats_(static_cast<size_t>(options.clients)) {}

  void start(sim::Cluster& cluster) override {
    cluster.node(kServer).start(sim::echo_server(kPort));
    const env::Address server = cluster.node(kServer).address(kPort);
    for (int i = 0; i < options_.clients; ++i) {
      sim::EchoStats& stats = stats_[static_cast<size_t>(i)];
      cluster.node(client_name(i))
          .start(sim::echo_client(server, {.size = options_.message_size}, stats));
    }
  }

  // Of the slowest client: all of them have to go on.
  uint64_t progress() const override {
    return std::ranges::min_element(stats_, {}, &sim::EchoStats::rounds)->rounds;
  }

  std::string check(sim::Cluster& cluster) override {
    result_.rounds = 0;
    result_.errors = 0;
    result_.mismatches = 0;
    for (const sim::EchoStats& one : stats_) {
      result_.rounds += one.rounds;
      result_.errors += one.errors;
      result_.mismatches += one.mismatches;
    }
    result_.events = cluster.events_run();
    result_.simulated = cluster.now() - Time{};
    if (result_.mismatches == 0) return {};
    return fmt::format("{} echoes came back different", result_.mismatches);
  }

 private:
  EchoRunOptions options_;
  EchoRunResult& result_;
  std::vector<sim::EchoStats> stats_;
};

sim::Scenario scenario_of(const EchoRunOptions& options, EchoRunResult& result) {
  sim::Scenario scenario;
  scenario.name = "echo";
  scenario.make = [&options, &result] { return std::make_unique<EchoWorkload>(options, result); };
  scenario.fault_phase = options.duration;
  scenario.faults.nodes = {kServer};
  scenario.faults.peers = {kServer};
  for (int i = 0; i < options.clients; ++i) scenario.faults.peers.push_back(client_name(i));
  if (!options.faults) scenario.draw = [](sim::ClusterOptions&, Rng&) {};
  return scenario;
}

}  // namespace

EchoRunResult run_echo(const EchoRunOptions& options) {
  EchoRunResult result;
  const sim::Scenario scenario = scenario_of(options, result);
  sim::FaultPlan plan;
  if (options.faults) plan = sim::plan_of(scenario, options.seed);
  const sim::RunResult run = sim::run_once(scenario, options.seed, plan);
  result.faults = plan.size();
  result.trace_hash = run.trace_hash;
  if (!run.failure.empty()) {
    result.failure = fmt::format("{}\nfaults:\n{}{}", run.failure, sim::text(plan), run.report);
  }
  return result;
}

}  // namespace cairn::apps
