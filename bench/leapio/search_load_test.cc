// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/search_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace cairn::bench::leapio {
namespace {

TEST(SearchLoad, HasTheSizesOfThePaper) {
  const std::vector<Lookup> all =
      draw({.seconds = 100, .per_second = 1000, .space = 1_GiB, .seed = 3});
  std::vector<uint64_t> sizes;
  for (const Lookup& lookup : all) {
    sizes.push_back(lookup.bytes);
    ASSERT_LE(lookup.offset + lookup.bytes, 1_GiB);
    ASSERT_TRUE(lookup.offset % 4096 == 0 && lookup.bytes % 4096 == 0);
  }
  std::ranges::sort(sizes);
  const double mean =
      std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
  EXPECT_NEAR(mean / 1024, 36, 1);
  EXPECT_EQ(sizes[sizes.size() / 2], 32_KiB);
  EXPECT_GE(sizes.front(), kLookupMin);
  EXPECT_GT(sizes.back(), 6_MiB);
  EXPECT_LE(sizes.back(), kLookupMax);
  EXPECT_LT(all.back().at.seconds(), 100);
  EXPECT_NEAR(static_cast<double>(all.size()), 100'000, 1000);
}

}  // namespace
}  // namespace cairn::bench::leapio
