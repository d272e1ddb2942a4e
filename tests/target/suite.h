// SPDX-License-Identifier: Apache-2.0
// How facts about the target are written: as those of the conformance suite, in all its worlds or,
// where time matters, in the simulator alone.
#pragma once

#include "conformance/suite.h"
#include "target/box.h"
#include "target/raw_host.h"

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

using Simulator = testing::Types<conformance::Sim>;

// Facts that take virtual time.
#define SIM_TEST_SUITE(suite)                 \
  template <class World>                      \
  class suite : public Conformance<World> {}; \
  TYPED_TEST_SUITE(suite, Simulator, WorldNames)

}  // namespace cairn::target_tests
