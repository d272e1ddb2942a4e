// SPDX-License-Identifier: Apache-2.0
// The adaptor to the simulator: the body runs on one node, once per seed.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/address.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/task.h"
#include "testing/worlds/scene.h"
#include "testing/worlds/seeds.h"
#include "testing/worlds/watchdog.h"
#include "testing/worlds/worlds.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/tear.h"

namespace cairn::conformance {

namespace {

constexpr uint64_t kSeeds = 5;
// Virtual time; a body that needs more is stuck.
constexpr Duration kLimit = 3000_s;

// Nothing here is an error: bytes come in pieces of any size and whenever they like, disks answer
// in any order, cores get to things late. The first seed has none of it.
sim::ClusterOptions benign_faults(uint64_t seed, const Setting& setting) {
  sim::ClusterOptions options;
  options.seed = seed;
  if (seed == 1 || setting.calm) return options;
  Rng rng(seed);
  options.network.faults.segment = rng.uniform() * 0.5;
  options.network.faults.delay = rng.uniform() * 0.1;
  options.network.faults.delay_max = 1_ms;
  options.network.jitter_max = Duration{static_cast<int64_t>(rng.below(100'000))};
  options.disk.faults.slow = rng.uniform() * 0.2;
  options.disk.faults.slow_max = 5_ms;
  options.wake_delay_max = Duration{static_cast<int64_t>(rng.below(20'000))};
  options.message_delay_max = Duration{static_cast<int64_t>(rng.below(50'000))};
  return options;
}

class SimScene final : public Scene {
 public:
  SimScene(sim::Cluster& cluster, sim::Node& node) : cluster_(cluster), node_(node) {}

  bool is_simulated() const override { return true; }
  env::Address any_port() const override { return node_.address(0); }
  env::Address foreign_address() const override { return env::Address::ip4(192, 0, 2, 1, 0); }
  std::optional<env::Address> any_port_ip6() const override {
    return env::Address::parse("[::1]:0").value();
  }
  std::optional<env::Address> local_socket(std::string_view name) const override {
    return env::Address::parse("unix:/run/" + std::string(name)).value();
  }
  env::Address silent_address() override {
    // A node on the other side of a partition hears nothing, so it cannot even refuse.
    const env::Address silent = cluster_.node("silent").address(9);
    cluster_.isolate("silent");
    return silent;
  }
  env::DiskOptions disk(std::string_view name, uint64_t size) const override {
    return {.path = std::string(name), .size = size, .create = true};
  }
  void break_reads(const env::DiskOptions& disk) override { node_.disk(disk.path).fail_reads(); }
  env::Descriptor foreign_memory(env::Env& env, uint64_t size) override {
    return env::sharing(env)->make_shared_memory(size).value();
  }
  void shrink(const env::Descriptor& memory, uint64_t size) override {
    sim::tear_memory(memory, size);
  }
  env::Descriptor full_signal(env::Env& env) override {
    env::Descriptor signal = env::sharing(env)->make_signal().value();
    env::sharing(env)->open_signal(signal).value()->raise();
    return signal;
  }
  void request_stop() override { node_.stop(); }

 private:
  sim::Cluster& cluster_;
  sim::Node& node_;
};

task::Task<void> run_body(env::Env& env, Scene& scene, Body body, bool& ended) {
  co_await run_to_end(env, scene, body);
  ended = true;
}

std::string run_seed(uint64_t seed, const Setting& setting, Body body) {
  bool ended = false;
  sim::Cluster cluster(benign_faults(seed, setting));
  sim::NodeOptions node_options;
  node_options.cores = setting.cores;
  sim::Node& node = cluster.node("test", node_options);
  SimScene scene(cluster, node);
  scene.set_encrypted(setting.encrypted);
  node.start([&scene, body, &ended](env::Env& env) { return run_body(env, scene, body, ended); });
  const bool in_time = cluster.run_until([&] { return ended && !node.is_running(); }, kLimit);
  if (!in_time) std::fprintf(stderr, "%s\n", cluster.report().c_str());
  EXPECT_TRUE(in_time) << current_test() << " hung: nothing completed it for " << text(kLimit);
  if (testing::Test::HasFailure()) std::fprintf(stderr, "%s\n", cluster.report().c_str());
  return scene.skipped();
}

}  // namespace

void Sim::run(const Setting& setting, Body body) {
  const Watchdog watchdog(current_test());
  for (const uint64_t seed : seeds(kSeeds)) {
    const std::string skipped = run_seed(seed, setting, body);
    if (!skipped.empty()) GTEST_SKIP() << skipped;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace cairn::conformance
