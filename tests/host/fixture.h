// SPDX-License-Identifier: Apache-2.0
// A host program and fake targets in the simulator.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/env.h"
#include "fabric/host/options.h"
#include "host/fake_target.h"
#include "task/deadline.h"
#include "task/task.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::host_tests {

inline std::vector<std::byte> random_bytes(size_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  Rng(seed).fill(bytes);
  return bytes;
}

inline fabric::HostOptions named_host() {
  fabric::HostOptions options;
  options.host_nqn = "nqn.2026-11.io.cairn:host";
  options.host_id = {9, 9, 9};
  return options;
}

// What runs on the host. A function, not a lambda with captures: the test is its argument.
template <class Test>
using Body = task::Task<void> (*)(env::Env&, Test&);

// What a SIM_TEST_F of a fixture has by name.
template <class Test>
struct HostScene {
  env::Env& env;
  Test& test;
};

class HostTest : public testing::Test {
 public:
  env::Address address() { return cluster_->node("target").address(kPort); }
  env::Address other_address() { return cluster_->node("other").address(kPort); }
  sim::Cluster& cluster() { return *cluster_; }

  FakeTarget target;
  FakeTarget other;  // a second way to the same medium
  bool has_other = false;
  fabric::HostOptions options = named_host();
  sim::ClusterOptions world;
  bool finished = false;
  // Called every millisecond from outside, while the host runs.
  std::function<void()> meanwhile;

 protected:
  // Runs `body` on the host to its end, and then checks that everything ends.
  template <class Test>
  void on_host(Test& test, Body<Test> body, Duration limit = 1000_s) {
    other.medium = target.medium;
    cluster_ = std::make_unique<sim::Cluster>(world);
    cluster_->node("target").start(target.program());
    if (has_other) cluster_->node("other").start(other.program());
    cluster_->node("host").start(
        [&test, body](env::Env& env) { return until_done(env, test, body); });
    const Time end = cluster_->now() + limit;
    while (!finished && cluster_->now() < end) {
      if (meanwhile) {
        cluster_->run_until([&] { return finished; }, 1_ms);
        meanwhile();
      } else {
        cluster_->run_until([&] { return finished; }, limit);
      }
    }
    EXPECT_TRUE(finished) << "the host does not come to its end\n" << cluster_->report();
    for (sim::Node* node : cluster_->nodes()) node->stop();
    EXPECT_TRUE(cluster_->run_until_idle(100_s));
    for (sim::Node* node : cluster_->nodes()) EXPECT_FALSE(node->is_running()) << node->name();
    cluster_.reset();
  }

 private:
  template <class Test>
  static task::Task<void> until_done(env::Env& env, Test& test, Body<Test> body) {
    const Result<void> slept = co_await task::sleep_for(env, 10_us);  // the listeners are there
    EXPECT_TRUE(slept.has_value());
    co_await body(env, test);
    test.finished = true;
  }
  std::unique_ptr<sim::Cluster> cluster_;
};

}  // namespace cairn::host_tests
