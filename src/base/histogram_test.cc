// SPDX-License-Identifier: Apache-2.0
#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace cairn {
namespace {

TEST(Histogram, EmptyAnswersZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.p99(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 50; ++value) histogram.record(value);
  EXPECT_EQ(histogram.p50(), 25u);
  EXPECT_EQ(histogram.percentile(1.0), 50u);
  EXPECT_EQ(histogram.percentile(0.0), 1u);
}

TEST(Histogram, PercentilesAreWithinABucketOfTheSortedTruth) {
  Rng rng(3);
  Histogram histogram;
  std::vector<uint64_t> truth;
  for (int i = 0; i < 100'000; ++i) {
    truth.push_back(static_cast<uint64_t>(rng.exponential(50'000)));
    histogram.record(truth.back());
  }
  std::sort(truth.begin(), truth.end());
  for (double fraction : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const auto exact = static_cast<double>(truth[static_cast<size_t>(fraction * 1e5) - 1]);
    const auto ours = static_cast<double>(histogram.percentile(fraction));
    EXPECT_GE(ours, exact);
    EXPECT_LE(ours, exact * (1 + 1.0 / 64) + 1) << fraction;
  }
  EXPECT_EQ(histogram.max(), truth.back());
}

TEST(Histogram, MergeEqualsRecordingTogether) {
  Rng rng(4);
  Histogram a, b, both;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = rng.below(1'000'000);
    (i % 3 == 0 ? a : b).record(value);
    both.record(value);
  }
  a.merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.p99(), both.p99());
  EXPECT_EQ(a.min(), both.min());
}

TEST(Histogram, HugeValuesLandInTheLastBucketAndMaxIsTrue) {
  Histogram histogram;
  histogram.record(UINT64_MAX);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
  EXPECT_EQ(histogram.p50(), UINT64_MAX);
}

}  // namespace
}  // namespace cairn
