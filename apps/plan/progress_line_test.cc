// SPDX-License-Identifier: Apache-2.0
#include "apps/plan/progress_line.h"

#include <gtest/gtest.h>

namespace cairn::apps {
namespace {

std::string line(double part, double seconds_left) {
  return progress_line(part, seconds_left, "2 s simulated");
}

TEST(ProgressLine, TellsThePartAndTheTimeThatIsLeft) {
  EXPECT_TRUE(line(0.25, 8.5).ends_with(" 25%  2 s simulated, 9 s to go")) << line(0.25, 8.5);
  EXPECT_TRUE(line(0.5, 65).ends_with(" 1 min 5 s to go")) << line(0.5, 65);
  EXPECT_TRUE(line(0.5, 3720).ends_with(" 1 h 2 min to go")) << line(0.5, 3720);
  EXPECT_TRUE(line(1, 0).ends_with("100%  2 s simulated, 0 s to go")) << line(1, 0);
}

TEST(ProgressLine, NoTimeIsToldThatNobodyKnows) {
  EXPECT_TRUE(line(0, -1).ends_with("  0%  2 s simulated")) << line(0, -1);
  EXPECT_TRUE(line(1.25, -1).ends_with("100%  2 s simulated")) << line(1.25, -1);
}

TEST(ProgressLine, TheBarIsAsWideWhateverIsDone) {
  EXPECT_EQ(line(0, 1).find(']'), line(0.7, 1).find(']'));
  EXPECT_EQ(line(0.9, 1).find(']'), line(1, 1).find(']'));
}

}  // namespace
}  // namespace cairn::apps
