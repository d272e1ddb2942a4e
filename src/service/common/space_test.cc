// SPDX-License-Identifier: Apache-2.0
#include "service/common/space.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "base/rng.h"

namespace cairn::drive {
namespace {

TEST(Space, TakesNextFitAndCounts) {
  Space space(100);
  EXPECT_EQ(space.take(), 0u);
  EXPECT_EQ(space.take(3), 1u);
  EXPECT_TRUE(space.give(0));
  EXPECT_EQ(space.take(), 4u);
  EXPECT_EQ(space.take(96), std::nullopt);
  EXPECT_EQ(space.take(94), 5u);
  EXPECT_EQ(space.free(), 2u);
  EXPECT_EQ(space.take(2), std::nullopt);
  EXPECT_EQ(space.take(), 99u);
  EXPECT_EQ(space.take(), 0u);
  EXPECT_EQ(space.take(), std::nullopt);
  EXPECT_EQ(space.used(), 100u);
}

TEST(Space, GivesNothingTwice) {
  Space space(10);
  EXPECT_EQ(space.take(2), 0u);
  EXPECT_TRUE(space.give(1));
  EXPECT_EQ(space.give(1).error().code(), Errc::kInvalid);
  EXPECT_EQ(space.give(10).error().code(), Errc::kInvalid);
  EXPECT_TRUE(space.give_after(0, 5));
  EXPECT_EQ(space.give_after(0, 6).error().code(), Errc::kInvalid);
  EXPECT_EQ(space.give(0).error().code(), Errc::kInvalid);
  EXPECT_EQ(space.free(), 9u);
}

TEST(Space, RefusesASecondOwner) {
  Space space(65);
  EXPECT_TRUE(space.claim(64));
  EXPECT_EQ(space.claim(64).error().code(), Errc::kCorrupt);
  EXPECT_EQ(space.claim(65).error().code(), Errc::kCorrupt);
  EXPECT_EQ(space.free(), 64u);
}

TEST(Space, TellsRunsOfFreeUnits) {
  Space space(200);
  const auto run = [&](uint64_t from, uint64_t max) {
    const Space::Run found = space.free_run(from, max);
    return std::pair(found.first, found.count);
  };
  EXPECT_EQ(run(0, 1000), std::pair(0UL, 200UL));
  EXPECT_EQ(run(7, 5), std::pair(7UL, 5UL));
  EXPECT_EQ(space.take(130), 0u);
  EXPECT_EQ(run(0, 1000), std::pair(130UL, 70UL));
  EXPECT_TRUE(space.give(64));
  EXPECT_TRUE(space.give_after(65, 1));
  EXPECT_EQ(run(0, 1000), std::pair(64UL, 1UL));
  EXPECT_EQ(run(65, 1000), std::pair(130UL, 70UL));
  EXPECT_EQ(space.take(70), 130u);
  EXPECT_EQ(run(65, 1000), std::pair(200UL, 0UL));
  EXPECT_EQ(run(200, 1), std::pair(200UL, 0UL));
}

TEST(Space, KeepsAUnitUntilItsRecordIsDurable) {
  Space space(2);
  EXPECT_EQ(space.take(2), 0u);
  EXPECT_TRUE(space.give_after(0, 7));
  EXPECT_TRUE(space.give_after(1, 9));
  EXPECT_EQ(space.on_their_way(), 2u);
  EXPECT_EQ(space.take(), std::nullopt);
  EXPECT_EQ(space.come_back(6), std::nullopt);
  EXPECT_EQ(space.come_back(8), 0u);
  EXPECT_EQ(space.come_back(8), std::nullopt);
  EXPECT_TRUE(space.give(0));
  EXPECT_EQ(space.take(), 0u);
}

TEST(Space, AgreesWithASet) {
  Rng rng(1);
  Space space(300);
  std::set<uint64_t> used;
  for (int step = 0; step < 20'000; ++step) {
    if (rng.bernoulli(0.5)) {
      const uint64_t count = rng.between(1, rng.bernoulli(0.9) ? 2 : 40);
      const std::optional<uint64_t> first = space.take(count);
      for (uint64_t i = 0; first && i < count; ++i) ASSERT_TRUE(used.insert(*first + i).second);
      if (!first && count == 1) ASSERT_EQ(used.size(), 300u);
    } else {
      const uint64_t unit = rng.below(300);
      ASSERT_EQ(space.give(unit).has_value(), used.erase(unit) == 1);
    }
    ASSERT_EQ(space.used(), used.size());
    ASSERT_EQ(space.free(), 300 - used.size());
  }
}

}  // namespace
}  // namespace cairn::drive
