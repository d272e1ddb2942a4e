// SPDX-License-Identifier: Apache-2.0
// The echo example in a cluster where everything goes wrong, seed by seed: crashes, partitions,
// pauses, resets, bytes cut anywhere. A message that counts as answered was answered with itself,
// every client gets on after healing, all programs stop, and a seed repeats its run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "examples/echo.h"
#include "task/task.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::examples {
namespace {

using task::Task;

constexpr uint16_t kPort = 7;
constexpr std::array kClients = {"client0", "client1", "client2"};

Task<void> run_server(env::Env& env, env::Address at) {
  const Result<std::unique_ptr<EchoServer>> server = EchoServer::make(env, {.at = std::move(at)});
  if (!server) co_return;  // only a node that is crashing cannot listen here
  [[maybe_unused]] const Result<void> served = co_await (*server)->run(env.stop_token());
}
Task<void> run_client(env::Env& env, EchoClientOptions options, EchoReport& report) {
  [[maybe_unused]] const Result<void> asked =
      co_await ask_echo(env, options, report, env.stop_token());
}

class EchoWorkload final : public sim::Workload {
 public:
  void start(sim::Cluster& cluster) override {
    sim::Node& server = cluster.node("server");
    server.start([at = server.address(kPort)](env::Env& env) { return run_server(env, at); });
    for (size_t i = 0; i < kClients.size(); ++i) {
      const EchoClientOptions options = {.server = server.address(kPort),
                                         .rounds = UINT64_MAX,
                                         .message_size = size_t{100} << (i * 4),
                                         .round_limit = 500_ms,
                                         .pause = 5_ms};
      cluster.node(kClients[i]).start([options, &report = reports_[i]](env::Env& env) {
        return run_client(env, options, report);
      });
    }
  }
  // Of the slowest: nobody may be left behind.
  uint64_t progress() const override {
    return std::ranges::min(reports_, {}, &EchoReport::rounds).rounds;
  }
  std::string check(sim::Cluster& cluster) override {
    const bool bits_flip = cluster.options().network.faults.bit_flip > 0;
    return bits_flip || corruptions() == 0 ? "" : "an answer is not the message that was sent";
  }

  uint64_t corruptions() const {
    uint64_t sum = 0;
    for (const EchoReport& report : reports_) sum += report.corruptions;
    return sum;
  }
  uint64_t failures() const {
    uint64_t sum = 0;
    for (const EchoReport& report : reports_) sum += report.failures;
    return sum;
  }

 private:
  std::array<EchoReport, kClients.size()> reports_;
};

sim::Scenario echo_scenario() {
  sim::Scenario scenario{.name = "echo example"};
  scenario.make = [] { return std::make_unique<EchoWorkload>(); };
  scenario.faults.nodes = {"server", kClients[0], kClients[1], kClients[2]};
  scenario.fault_phase = 5_s;
  scenario.seeds = 50;
  return scenario;
}

TEST(EchoScenario, EveryMessageIsAnsweredWithItselfWhateverHappens) {
  EXPECT_EQ(run_scenario(echo_scenario()), "");
}

// Keeps the counts of a run that has ended.
struct Counted final : sim::Workload {
  Counted(uint64_t& its_failures, uint64_t& its_corruptions)
      : failures(its_failures), corruptions(its_corruptions) {}
  ~Counted() override {
    failures += echo.failures();
    corruptions += echo.corruptions();
  }
  void start(sim::Cluster& cluster) override { echo.start(cluster); }
  uint64_t progress() const override { return echo.progress(); }
  EchoWorkload echo;
  uint64_t& failures;
  uint64_t& corruptions;
};

TEST(EchoScenario, FlippedBitsAreNoticedAndAskedAgain) {
  uint64_t failures = 0;
  uint64_t corruptions = 0;
  sim::Scenario scenario = echo_scenario();
  scenario.make = [&] { return std::make_unique<Counted>(failures, corruptions); };
  scenario.draw = [](sim::ClusterOptions& options, Rng& rng) {
    sim::draw_options(options, rng);
    options.network.faults.bit_flip = 0.002;
  };
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const sim::RunResult result = run_once(scenario, seed, plan_of(scenario, seed));
    EXPECT_EQ(result.failure, "") << result.report;
  }
  EXPECT_GT(corruptions, 0u) << "the flips are real";
  EXPECT_GT(failures, corruptions) << "and so are the other faults";
}

}  // namespace
}  // namespace cairn::examples
