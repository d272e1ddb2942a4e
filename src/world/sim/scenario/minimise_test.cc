// SPDX-License-Identifier: Apache-2.0
#include "world/sim/scenario/minimise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "base/rng.h"

namespace cairn::sim {
namespace {

std::vector<int> numbers(int count) {
  std::vector<int> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// Fails when all causes are in the list.
struct NeedsAll {
  std::set<int> causes;
  int* runs;
  bool operator()(const std::vector<int>& list) const {
    ++*runs;
    const std::set<int> there(list.begin(), list.end());
    return std::ranges::includes(there, causes);
  }
};

TEST(Minimise, FindsASingleCauseWhereverItIs) {
  for (int cause = 0; cause < 10; ++cause) {
    int runs = 0;
    EXPECT_EQ(minimise(numbers(10), NeedsAll{{cause}, &runs}), std::vector{cause});
    EXPECT_LE(runs, 12);
  }
}

TEST(Minimise, FindsSeveralCausesTogether) {
  Rng rng(9);
  for (int run = 0; run < 200; ++run) {
    std::set<int> causes;
    const uint64_t count = rng.between(1, 6);
    while (causes.size() < count) causes.insert(static_cast<int>(rng.below(40)));
    int runs = 0;
    const std::vector<int> expected(causes.begin(), causes.end());
    EXPECT_EQ(minimise(numbers(40), NeedsAll{causes, &runs}), expected);
  }
}

TEST(Minimise, NoCauseAtAllLeavesNothing) {
  int runs = 0;
  EXPECT_TRUE(minimise(numbers(10), NeedsAll{{}, &runs}).empty());
  EXPECT_TRUE(minimise(numbers(0), NeedsAll{{}, &runs}).empty());
}

TEST(Minimise, EitherOfTwoCausesLeavesOne) {
  const auto either = [](const std::vector<int>& list) {
    return std::ranges::count(list, 3) + std::ranges::count(list, 8) > 0;
  };
  EXPECT_EQ(minimise(numbers(10), either).size(), 1u);
}

}  // namespace
}  // namespace cairn::sim
