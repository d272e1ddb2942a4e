// SPDX-License-Identifier: Apache-2.0
// SIM_TEST: a fact about code on a simulated node, written as a coroutine.
//
//   SIM_TEST(Stripe, HasTheGeometryOfItsDrives) {
//     const std::unique_ptr<Drive> drive = co_await must_open(env, "stripe(...)", leaves);
//     EXPECT_EQ(drive->geometry().block_size, 4096u);
//     co_await drive->close();
//   }
//
// is a TEST of that name. Its body runs on the node "host" of a new cluster to its end, in virtual
// time, and has the members of a SimScene by name. What follows the name are the node's options:
//
//   SIM_TEST(SharedDrive, TellsHolesToOtherCores, .cores = 3) { ... }
//
// SIM_TEST_F and SIM_TEST_P are the same for a fixture, as TEST_F and TEST_P are. The fixture has
// `run(body)`, which calls `body(a, b, ...)` on a node and runs that to its end, and a public
// `struct Scene { A& a; B& b; ... }`, whose members the body has by name. It has none of the
// fixture's own members; what it needs of these, Scene names.
//
// EXPECT_* works in a body, ASSERT_* does not: CO_ASSERT_TRUE takes its place. A test that sets
// something up before its run, or looks at what a run left, calls run_in_sim() in a TEST.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "env/env.h"
#include "task/task.h"
#include "world/sim/cluster.h"

namespace cairn::sim {

struct SimScene {
  env::Env& env;
  Cluster& cluster;

  Medium& disk(const std::string& path) const { return cluster.node("host").disk(path); }
};

// Runs `body(env)` to its end in virtual time, on the node "host". What it refers to must live
// until then; it may be called again on the same cluster, whose disks keep what they hold.
template <class Body>
void run_in_sim(Cluster& cluster, Body body) {
  Node& node = cluster.node("host");
  node.start([body](env::Env& env) { return body(env); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 10'000_s)) << cluster.report();
}
// The same on a node that is new.
template <class Body>
void run_in_sim(Cluster& cluster, Body body, const NodeOptions& options) {
  cluster.node("host", options);
  run_in_sim(cluster, body);
}
template <class Body>
void run_in_sim(Body body, const NodeOptions& options = {}) {
  Cluster cluster;
  run_in_sim(cluster, body, options);
}

// The body of a test, with a scene of what `args` refer to.
template <class Scene, class... Args>
task::Task<void> play(Args&... args) {
  Scene scene{{args...}};
  co_await scene.body();
}

template <class Scene>
void play_in_sim(const NodeOptions& options) {
  Cluster cluster;
  run_in_sim(cluster, [&cluster](env::Env& env) { return play<Scene>(env, cluster); }, options);
}

}  // namespace cairn::sim

// NOLINTBEGIN(bugprone-macro-parentheses): names that are being declared cannot have parentheses.
#define SIM_TEST(suite, fact, ...)                                                        \
  struct suite##_##fact##_Scene : ::cairn::sim::SimScene {                                \
    ::cairn::task::Task<void> body();                                                     \
  };                                                                                      \
  TEST(suite, fact) { ::cairn::sim::play_in_sim<suite##_##fact##_Scene>({__VA_ARGS__}); } \
  ::cairn::task::Task<void> suite##_##fact##_Scene::body()

#define SIM_TEST_F(fixture, fact) CAIRN_SIM_TEST_OF(TEST_F, fixture, fact)
#define SIM_TEST_P(fixture, fact) CAIRN_SIM_TEST_OF(TEST_P, fixture, fact)

#define CAIRN_SIM_TEST_OF(kind, fixture, fact)                                                \
  struct fixture##_##fact##_Scene : fixture::Scene {                                          \
    ::cairn::task::Task<void> body();                                                         \
  };                                                                                          \
  kind(fixture, fact) {                                                                       \
    this->run(                                                                                \
        [](auto&... args) { return ::cairn::sim::play<fixture##_##fact##_Scene>(args...); }); \
  }                                                                                           \
  ::cairn::task::Task<void> fixture##_##fact##_Scene::body()
// NOLINTEND(bugprone-macro-parentheses)

// Shows the error of a Result that should have none.
#define EXPECT_OK(result) EXPECT_TRUE((result).has_value()) << (result).error().text()

// ASSERT_TRUE for coroutines.
#define CO_ASSERT_TRUE(condition) \
  if (!(condition)) {             \
    ADD_FAILURE() << #condition;  \
    co_return;                    \
  }
