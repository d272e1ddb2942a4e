// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/echo_run.h"

#include <gtest/gtest.h>

namespace cairn::apps {
namespace {

TEST(EchoRun, WithoutFaultsEveryEchoComesBack) {
  const EchoRunResult result = run_echo({.duration = 100_ms});
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.rounds, 1000U);
  EXPECT_EQ(result.errors, 0U);
  EXPECT_EQ(result.faults, 0U);
  EXPECT_GE(result.simulated, 100_ms);
}

TEST(EchoRun, SurvivesItsFaults) {
  uint64_t faults = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const EchoRunResult result = run_echo({.seed = seed, .duration = 2_s, .faults = true});
    EXPECT_EQ(result.failure, "");
    EXPECT_GT(result.rounds, 0U);
    faults += result.faults;
  }
  EXPECT_GT(faults, 0U);
}

TEST(EchoRun, IsTheSameForTheSameSeed) {
  const EchoRunOptions options{.seed = 7, .duration = 1_s, .faults = true};
  const EchoRunResult once = run_echo(options);
  const EchoRunResult again = run_echo(options);
  EXPECT_EQ(once.trace_hash, again.trace_hash);
  EXPECT_EQ(once.events, again.events);
  EXPECT_NE(run_echo({.seed = 8, .duration = 1_s, .faults = true}).trace_hash, once.trace_hash);
}

}  // namespace
}  // namespace cairn::apps
