// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/progress_line.h"

#include <gtest/gtest.h>

namespace cairn::apps {
namespace {

std::string line(uint64_t done, uint64_t total, double seconds) {
  return progress_line(done, total, Duration::from_seconds(seconds), "2 s simulated");
}

TEST(ProgressLine, TheRestTakesAsLongAsThePartThatIsDone) {
  EXPECT_TRUE(line(1, 4, 3).ends_with(" 25%  2 s simulated, 9 s to go")) << line(1, 4, 3);
  EXPECT_TRUE(line(1, 2, 65).ends_with(" 1 min 5 s to go")) << line(1, 2, 65);
  EXPECT_TRUE(line(1, 2, 3720).ends_with(" 1 h 2 min to go")) << line(1, 2, 3720);
  EXPECT_TRUE(line(4, 4, 3).ends_with("100%  2 s simulated, 0 s to go")) << line(4, 4, 3);
}

TEST(ProgressLine, NobodyKnowsBeforeTheFirstStepAndAfterTheLast) {
  EXPECT_TRUE(line(0, 4, 3).ends_with("  0%  2 s simulated")) << line(0, 4, 3);
  EXPECT_TRUE(line(5, 4, 3).ends_with("100%  2 s simulated")) << line(5, 4, 3);
  EXPECT_TRUE(line(0, 0, 3).ends_with("100%  2 s simulated, 0 s to go")) << line(0, 0, 3);
}

TEST(ProgressLine, TheBarIsAsWideWhateverIsDone) {
  EXPECT_EQ(line(0, 10, 1).find(']'), line(7, 10, 1).find(']'));
  EXPECT_EQ(line(9, 10, 1).find(']'), line(10, 10, 1).find(']'));
}

}  // namespace
}  // namespace cairn::apps
