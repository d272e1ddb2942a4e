// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/path_set.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::fabric {
namespace {

using Rank = Path::Rank;

std::vector<std::optional<size_t>> picks(PathTurns& turns, const std::vector<Rank>& ranks,
                                         int count) {
  std::vector<std::optional<size_t>> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(turns.pick(ranks.size(), [&](size_t each) { return ranks[each]; }));
  }
  return all;
}

TEST(PathTurns, EqualsTakeTurns) {
  PathTurns turns;
  EXPECT_EQ(picks(turns, {Rank::kOptimized, Rank::kOptimized, Rank::kOptimized}, 4),
            (std::vector<std::optional<size_t>>{0, 1, 2, 0}));
}

TEST(PathTurns, OptimizedOnesComeFirst) {
  PathTurns turns;
  EXPECT_EQ(
      picks(turns, {Rank::kNonOptimized, Rank::kOptimized, Rank::kUnusable, Rank::kOptimized}, 4),
      (std::vector<std::optional<size_t>>{1, 3, 1, 3}));
}

TEST(PathTurns, OthersTakeTurnsWhenNoneIsOptimized) {
  PathTurns turns;
  EXPECT_EQ(picks(turns, {Rank::kNonOptimized, Rank::kUnusable, Rank::kNonOptimized}, 3),
            (std::vector<std::optional<size_t>>{0, 2, 0}));
}

TEST(PathTurns, NoneIsPickedWhereNoneIsUsable) {
  PathTurns turns;
  EXPECT_EQ(picks(turns, {Rank::kUnusable, Rank::kUnusable}, 1),
            (std::vector<std::optional<size_t>>{std::nullopt}));
  EXPECT_EQ(picks(turns, {}, 1), (std::vector<std::optional<size_t>>{std::nullopt}));
  // Whose turn it is, that does not change.
  EXPECT_EQ(picks(turns, {Rank::kOptimized, Rank::kOptimized}, 2),
            (std::vector<std::optional<size_t>>{0, 1}));
}

TEST(PathSet, ASetOfNoPathsHasNone) {
  PathSet paths;
  EXPECT_EQ(paths.pick(), nullptr);
  EXPECT_FALSE(paths.has_connected());
  EXPECT_EQ(paths.none_usable(), Errc::kUnreachable);
}

}  // namespace
}  // namespace cairn::fabric
