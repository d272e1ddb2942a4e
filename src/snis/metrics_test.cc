// SPDX-License-Identifier: Apache-2.0
#include "snis/metrics.h"

#include <gtest/gtest.h>

#include "snis/convergence.h"

namespace cairn::snis {
namespace {

TEST(Metrics, ThroughputIsBitsOverBothDelays) {
  const std::vector<trace::Record> requests = {
      {.bytes = 1000}, {.bytes = 500, .write = true}, {.bytes = 8}};
  Times times(3);
  times.storage_arrival = {0, 100, 0};
  times.storage_departure = {600, 300, kNever};
  times.network_arrival = {600'000, 0, kNever};
  times.network_departure = {1'000'000, 200'000, kNever};
  const Metrics found = metrics(requests, times);
  EXPECT_EQ(throughputs_gbps(requests, times), (std::vector<double>{8.0, 10.0}));
  EXPECT_EQ(found.unfinished, 1U);
  EXPECT_DOUBLE_EQ(found.throughput_gbps.mean, 9);
  EXPECT_DOUBLE_EQ(found.throughput_gbps.p50, 9);
  EXPECT_DOUBLE_EQ(found.throughput_gbps.p90, 9.8);
  EXPECT_DOUBLE_EQ(found.read.storage.mean, 600);
  EXPECT_DOUBLE_EQ(found.read.network.mean, 400);
  EXPECT_DOUBLE_EQ(found.write.total.max, 400);
}

TEST(Metrics, EquationsThreeAndFour) {
  EXPECT_DOUBLE_EQ(relative_distance(4, 5), 0.2);
  EXPECT_DOUBLE_EQ(relative_distance(5, 4), 0.2);
  EXPECT_EQ(relative_distance(0, 0), 0);
  const Metrics before{.throughput_gbps = {.mean = 1, .p50 = 2, .p90 = 10}};
  const Metrics after{.throughput_gbps = {.mean = 2, .p50 = 2, .p90 = 8}};
  const Distance equal = distance(before, after, kEqualWeights);
  EXPECT_DOUBLE_EQ(equal.mean, 0.5);
  EXPECT_DOUBLE_EQ(equal.median, 0);
  EXPECT_DOUBLE_EQ(equal.p90, 0.2);
  EXPECT_NEAR(equal.criterion, 0.7 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(distance(before, after, {0, 0, 1}).criterion, 0.2);
}

TEST(Convergence, StopsBelowSigma) {
  Convergence convergence({.sigma = 0.1});
  EXPECT_EQ(convergence.add(0.4), Stable::kNo);
  EXPECT_EQ(convergence.add(0.1), Stable::kNo);
  EXPECT_EQ(convergence.add(0.0999), Stable::kBelowSigma);
  EXPECT_EQ(convergence.add(0.5), Stable::kNo);
  EXPECT_EQ(convergence.at(), 3);
  EXPECT_EQ(convergence.why(), Stable::kBelowSigma);
}

TEST(Convergence, StopsWithinTauSeveralTimesInARow) {
  Convergence convergence({.sigma = 0.01, .tau = 0.02, .in_a_row = 3});
  for (const double criterion : {0.30, 0.29, 0.28, 0.20, 0.21, 0.20}) {
    EXPECT_EQ(convergence.add(criterion), Stable::kNo);
  }
  EXPECT_EQ(convergence.add(0.21), Stable::kWithinTau);
  EXPECT_EQ(convergence.at(), 7);
}

TEST(Distribution, OfNothingIsZero) {
  EXPECT_EQ(distribution({}).p99, 0);
  EXPECT_EQ(distribution({5}).p99, 5);
}

}  // namespace
}  // namespace cairn::snis
