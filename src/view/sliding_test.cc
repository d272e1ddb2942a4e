// SPDX-License-Identifier: Apache-2.0
#include "view/sliding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace cairn::view {
namespace {

constexpr Time at(int64_t ms) { return Time{ms * 1'000'000}; }

TEST(Sliding, CountsWhatHappenedInTheWindow) {
  Sliding<uint64_t> sums;
  for (int64_t ms = 0; ms < 1000; ++ms) sums.add(at(ms), at(ms), 1);
  EXPECT_EQ(sums.current(at(999)), 200u);
  EXPECT_EQ(sums.newest(at(999)), 200u);
}

TEST(Sliding, TheOrderOfArrivalChangesNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    std::vector<int64_t> stamps;
    for (int i = 0; i < 500; ++i) stamps.push_back(static_cast<int64_t>(700 + rng.below(300)));
    Sliding<uint64_t> one;
    for (const int64_t stamp : stamps) one.add(at(stamp), at(1000), 1);
    std::ranges::sort(stamps);
    Sliding<uint64_t> other;
    for (const int64_t stamp : stamps) other.add(at(stamp), at(1000), 1);
    for (const int64_t now : {1000, 1050, 1100, 1200}) {
      EXPECT_EQ(one.current(at(now)), other.current(at(now))) << seed;
    }
  }
}

TEST(Sliding, WhatIsOlderThanTheWindowIsNotCounted) {
  Sliding<uint64_t> sums;
  EXPECT_FALSE(Sliding<uint64_t>::is_in_time(at(600), at(1000)));
  EXPECT_TRUE(Sliding<uint64_t>::is_in_time(at(701), at(1000)));
  sums.add(at(600), at(1000), 1);
  EXPECT_TRUE(sums.is_over(at(1000)));
  sums.add(at(1000), at(1000), 1);
  EXPECT_FALSE(sums.is_over(at(1200)));
  EXPECT_TRUE(sums.is_over(at(1400)));
  EXPECT_EQ(sums.current(at(1400)), 0u);
}

TEST(Sliding, WhatSeemsToBeLaterThanNowCountsAsNow) {
  Sliding<uint64_t> sums;
  sums.add(at(5000), at(1000), 1);
  EXPECT_EQ(sums.newest(at(1000)), 1u);
}

TEST(Ewma, ANewValueCountsThreeTenths) {
  Ewma average;
  average.add(1000);
  EXPECT_EQ(average.value(), 1000u);
  average.add(2000);
  EXPECT_EQ(average.value(), 1300u);
  for (int i = 0; i < 40; ++i) average.add(0);
  EXPECT_EQ(average.value(), 0u);
}

}  // namespace
}  // namespace cairn::view
