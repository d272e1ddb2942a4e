// SPDX-License-Identifier: Apache-2.0
// How facts about the target are written: as those of the conformance suite, in all its worlds or,
// where time matters, in the simulator alone.
#pragma once

#include "testing/target/box.h"
#include "testing/target/raw_host.h"
#include "testing/worlds/suite.h"

namespace cairn::target_tests {

using conformance::Conformance;
using conformance::must;
using conformance::pattern;
using conformance::Scene;
using conformance::WorldNames;
using conformance::Worlds;
using nvme::FatalError;
using nvme::IoOpcode;
using nvme::Sqe;
using nvme::StatusCode;
using task::Task;

// A box and one host of it, with an admin queue and an I/O queue.
struct BoxAndHost {
  explicit BoxAndHost(env::Env& env, const BoxOptions& options = {})
      : box(env, options), admin(env), queue(env) {}
  Task<void> open(Scene& scene, nvme::IcReqOptions options = {}) {
    co_await box.open(scene.any_port());
    co_await admin.arrive(box.address, options);
    co_await queue.join(box.address, admin, 1, options);
  }
  Task<void> close() {
    admin.stream.reset();
    queue.stream.reset();
    co_await box.close();
  }
  Box box;
  RawHost admin;
  RawHost queue;
};

using Simulator = testing::Types<conformance::Sim>;

// Facts that take virtual time. The name is being declared: it cannot have the parentheses that the
// check wants.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define SIM_WORLD_TEST_SUITE(suite)           \
  template <class World>                      \
  class suite : public Conformance<World> {}; \
  TYPED_TEST_SUITE(suite, Simulator, WorldNames)
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace cairn::target_tests
