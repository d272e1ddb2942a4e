// SPDX-License-Identifier: Apache-2.0
#include "arbiter/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cairn::arbiter {
namespace {

using volume::MegaVolId;

// Drives 0, 1, ... that are alike.
std::vector<Candidate> drives(size_t count) {
  std::vector<Candidate> all(count);
  for (size_t i = 0; i < count; ++i) {
    all[i] = {.id = MegaVolId(static_cast<uint16_t>(i)), .extents = 100, .free = 50};
    all[i].of_volume = 5;
  }
  return all;
}

std::vector<size_t> chosen(const std::vector<Candidate>& candidates, uint32_t count = 1,
                           volume::Weights weights = {}) {
  const Result<std::vector<size_t>> result =
      choose({.candidates = candidates, .taken = {}, .weights = weights, .count = count}, nullptr);
  return result ? *result : std::vector<size_t>{};
}

TEST(Placement, EachFactorAloneDecides) {
  const auto second_is_better = [](auto change) {
    std::vector<Candidate> all = drives(3);
    EXPECT_EQ(chosen(all), std::vector<size_t>{0});
    change(all[1]);
    return chosen(all) == std::vector<size_t>{1};
  };
  const auto first_is_worse = [](auto change) {
    std::vector<Candidate> all = drives(2);
    change(all[0]);
    return chosen(all) == std::vector<size_t>{1};
  };
  EXPECT_TRUE(second_is_better([](Candidate& drive) { drive.of_volume = 4; }));
  EXPECT_TRUE(second_is_better([](Candidate& drive) { drive.free = 60; }));
  EXPECT_TRUE(first_is_worse([](Candidate& drive) { drive.load.busy = 10; }));
  EXPECT_TRUE(first_is_worse([](Candidate& drive) { drive.load.fragmentation = 10; }));
  EXPECT_TRUE(first_is_worse([](Candidate& drive) { drive.preference = 10; }));
}

TEST(Placement, WeightsSayHowMuchEachFactorCounts) {
  std::vector<Candidate> all = drives(2);
  all[0].load.busy = 600;
  all[1].of_volume = 2;
  all[0].of_volume = 1;
  EXPECT_EQ(chosen(all), std::vector<size_t>{1});
  EXPECT_EQ(chosen(all, 1, {.busy = 100}), std::vector<size_t>{0});
}

TEST(Placement, PackingFillsTheFullestDriveAndSpreadingTheEmptiest) {
  std::vector<Candidate> all = drives(3);
  all[1].free = 10;
  all[2].free = 90;
  EXPECT_EQ(chosen(all, 1, volume::kSpread), std::vector<size_t>{2});
  EXPECT_EQ(chosen(all, 1, volume::kPack), std::vector<size_t>{1});
}

TEST(Placement, LegsAreOnDrivesThatDiffer) {
  EXPECT_EQ(chosen(drives(3), 3), (std::vector<size_t>{0, 1, 2}));
  const Result<std::vector<size_t>> none =
      choose({.candidates = drives(2), .taken = {}, .weights = {}, .count = 3}, nullptr);
  EXPECT_EQ(none.error().code(), Errc::kNoSpace);
}

TEST(Placement, AFullDriveIsPassedOver) {
  std::vector<Candidate> all = drives(2);
  all[0].free = 0;
  EXPECT_EQ(chosen(all, 1, volume::kPack), std::vector<size_t>{1});
  all[1].free = 0;
  EXPECT_TRUE(chosen(all).empty());
}

TEST(Placement, LegsAreInBoxesAndRacksThatDifferWhenThereAre) {
  std::vector<Candidate> all = drives(4);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].box = i < 2 ? "a" : i == 2 ? "b" : "c";
    all[i].rack = i < 3 ? "one" : "two";
  }
  all[3].load.busy = 1000;
  EXPECT_EQ(chosen(all, 2), (std::vector<size_t>{0, 3})) << "another rack, though busy";
  EXPECT_EQ(chosen(all, 3), (std::vector<size_t>{0, 3, 2}));
  for (Candidate& each : all) each.box = each.rack = "same";
  EXPECT_EQ(chosen(all, 3), (std::vector<size_t>{0, 1, 2})) << "there are no others";
}

TEST(Placement, ALegThatIsThereAlreadyCounts) {
  std::vector<Candidate> all = drives(3);
  for (Candidate& each : all) each.box = "a";
  all[2].box = "b";
  const std::vector<Candidate> taken = {all[0]};
  const Result<std::vector<size_t>> more =
      choose({.candidates = all, .taken = taken, .weights = {}, .count = 1}, nullptr);
  ASSERT_TRUE(more);
  EXPECT_EQ(*more, std::vector<size_t>{2});
}

TEST(Placement, WhatWasPromisedToOthersStaysPossible) {
  // Two drives with little and one with much room: three extents with two replicas each need one
  // leg of each on the large one, so packing must not fill the small ones.
  std::vector<Candidate> all = drives(3);
  all[0].free = 3;
  all[1].free = 1;
  all[2].free = 2;
  const PlacementArgs args{.candidates = all,
                           .taken = {},
                           .weights = volume::kPack,
                           .count = 2,
                           .after = {.extents = {0, 2, 0}}};
  const Result<std::vector<size_t>> both = choose(args, nullptr);
  ASSERT_TRUE(both);
  std::vector<uint32_t> left = {3, 1, 2};
  for (const size_t each : *both) --left[each];
  EXPECT_TRUE(is_feasible(left, args.after));
}

TEST(Demand, IsFeasibleWhenReplicasFindDrivesThatDiffer) {
  const std::vector<uint32_t> free = {100, 100, 10};
  EXPECT_TRUE(is_feasible(free, {.extents = {0, 0, 10}}));
  EXPECT_FALSE(is_feasible(free, {.extents = {0, 0, 11}}));
  EXPECT_FALSE(is_feasible(free, {.extents = {100, 0, 20}})) << "although there is room for all";
  EXPECT_TRUE(is_feasible(free, {.extents = {210, 0, 0}}));
  EXPECT_FALSE(is_feasible(free, {.extents = {211, 0, 0}}));
  EXPECT_TRUE(is_feasible(free, {.extents = {0, 105, 0}}));
  EXPECT_FALSE(is_feasible(free, {.extents = {0, 106, 0}}));
  EXPECT_TRUE(is_feasible({}, {}));
}

TEST(Placement, TheMatrixShowsEveryDriveAndWhoWon) {
  std::vector<Candidate> all = drives(3);
  all[0].free = 0;
  all[2].load.busy = 100;
  std::vector<ScoreRow> rows;
  ASSERT_TRUE(choose({.candidates = all, .taken = {}, .weights = {}, .count = 1}, &rows));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(rows[0].is_full);
  EXPECT_TRUE(rows[1].is_chosen);
  EXPECT_EQ(rows[2].factors.busy, 100);
  EXPECT_EQ(rows[1].score, 1000 * 1000 + 500 * 1000);
  EXPECT_EQ(rows[2].score - rows[1].score, 100 * 1500);
}

}  // namespace
}  // namespace cairn::arbiter
