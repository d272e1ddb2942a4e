// SPDX-License-Identifier: Apache-2.0
#include "world/sim/scenario/fork_testing.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/check.h"

namespace cairn::sim {
namespace {

TEST(RunForked, BringsBackTheAnswerAndNothingElse) {
  int changed = 0;
  const ForkedResult result = run_forked([&] {
    changed = 1;
    return std::string(1 << 20, 'x');
  });
  EXPECT_TRUE(result.has_ended_well);
  EXPECT_EQ(result.answer, std::string(1 << 20, 'x'));
  EXPECT_EQ(changed, 0);
}

TEST(RunForked, AFailedCheckEndsTheChildOnly) {
  const ForkedResult result = run_forked([]() -> std::string {
    CHECK(false, "in the child");
    return "not reached";
  });
  EXPECT_FALSE(result.has_ended_well);
  EXPECT_EQ(result.answer, "");
  EXPECT_NE(result.errors.find("in the child"), std::string::npos);
  EXPECT_NE(result.errors.find("ended by signal"), std::string::npos);
}

}  // namespace
}  // namespace cairn::sim
