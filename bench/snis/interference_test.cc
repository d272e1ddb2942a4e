// SPDX-License-Identifier: Apache-2.0
#include "bench/snis/interference.h"

#include <gtest/gtest.h>

namespace cairn::bench::snis_paper {
namespace {

TEST(Interference, ReadsSufferMoreThanWritesWhenRequestsComeFast) {
  const Interference found = measure_interference(true, 1);
  ASSERT_EQ(found.by_gap.size(), 3U);
  const Slowdown& slow = found.by_gap.front();
  const Slowdown& fast = found.by_gap.back();
  EXPECT_LT(slow.read(), fast.read());
  EXPECT_GT(fast.read(), fast.write());
  EXPECT_LT(slow.write(), 1.5);
}

TEST(Interference, LargerRequestsAreMoreInTheWay) {
  const Interference found = measure_interference(true, 1);
  ASSERT_EQ(found.by_size.size(), 4U);
  EXPECT_LT(found.by_size.front().read(), found.by_size.back().read());
}

TEST(Interference, SameSeedSameFigure) {
  const Interference one = measure_interference(false, 7);
  const Interference other = measure_interference(false, 7);
  EXPECT_EQ(one.by_gap.back().read_mixed_us, other.by_gap.back().read_mixed_us);
}

}  // namespace
}  // namespace cairn::bench::snis_paper
