// SPDX-License-Identifier: Apache-2.0
#include "trace/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace cairn::trace {
namespace {

struct Sample {
  double mean = 0;
  double scv = 0;
  double correlation = 0;
};

Sample sample(const Moments& moments, size_t count, uint64_t seed = 7) {
  Draw draw(moments, seed);
  std::vector<double> values(count);
  std::ranges::generate(values, [&] { return draw.next(); });
  Sample found;
  for (const double value : values) found.mean += value / static_cast<double>(count);
  double variance = 0;
  double product = 0;
  for (size_t i = 0; i < count; ++i) {
    variance += (values[i] - found.mean) * (values[i] - found.mean);
    if (i > 0) product += (values[i] - found.mean) * (values[i - 1] - found.mean);
  }
  found.correlation = product / variance;
  found.scv = variance / static_cast<double>(count) / found.mean / found.mean;
  return found;
}

class FittedMoments : public testing::TestWithParam<double> {};

TEST_P(FittedMoments, HaveTheMeanAndVarianceThatWereAskedFor) {
  const double scv = GetParam();
  const Sample found = sample({.mean = 42, .scv = scv}, 2'000'000);
  EXPECT_NEAR(found.mean, 42, 42 * 0.02);
  EXPECT_NEAR(found.scv, scv, scv * 0.05);
  EXPECT_NEAR(found.correlation, 0, 0.01);
}
INSTANTIATE_TEST_SUITE_P(Scvs, FittedMoments,
                         testing::Values(0.05, 0.3, 0.5, 0.9, 1.0, 1.8, 4.7, 8.2, 55.6));

TEST(Moments, NoVarianceIsAConstant) {
  Draw draw({.mean = 3, .scv = 0}, 1);
  EXPECT_EQ(draw.next(), 3);
  EXPECT_EQ(draw.next(), 3);
}

TEST(Moments, CorrelationIsKeptBesideBothMoments) {
  for (const double correlation : {0.2, 0.35, -0.03}) {
    const Sample found = sample({.mean = 10, .scv = 5, .correlation = correlation}, 4'000'000);
    EXPECT_NEAR(found.mean, 10, 0.3);
    EXPECT_NEAR(found.scv, 5, 0.25);
    EXPECT_NEAR(found.correlation, correlation, 0.02);
  }
}

TEST(Moments, ImpossibleOnesAreTold) {
  EXPECT_TRUE(check(Moments{.mean = 0})->contains("mean"));
  EXPECT_TRUE(check(Moments{.scv = -1})->contains("SCV"));
  EXPECT_TRUE(check(Moments{.scv = std::nan("")})->contains("SCV"));
  EXPECT_TRUE(check(Moments{.scv = 0.5, .correlation = 0.1})->contains("above 1"));
  EXPECT_TRUE(check(Moments{.scv = 5, .correlation = 0.4})->contains("below 0.4"));
}

TEST(Synthetic, TheFiveTracesHaveTheMeansOfTableTwo) {
  for (const PaperTrace& row : paper_traces()) {
    Synthetic many = synthetic_of(row, 3);
    many.reads.requests = many.writes.requests = 400'000;
    double bytes[2] = {0, 0};
    Nanos last[2] = {0, 0};
    for (const Record& record : draw(many)) {
      bytes[record.write ? 1 : 0] += record.bytes;
      last[record.write ? 1 : 0] = record.arrival;
    }
    EXPECT_NEAR(bytes[0] / 400e6, row.read_size_kb, row.read_size_kb * 0.02) << row.name;
    EXPECT_NEAR(bytes[1] / 400e6, row.write_size_kb, row.write_size_kb * 0.03) << row.name;
    EXPECT_NEAR(bytes[0] * 8 / static_cast<double>(last[0]), row.read_gbps, row.read_gbps * 0.06);
    EXPECT_NEAR(bytes[1] * 8 / static_cast<double>(last[1]), row.write_gbps, row.write_gbps * 0.06);
  }
}

TEST(Synthetic, ASeedIsATrace) {
  const Synthetic one = synthetic_of(*paper_trace("F_t_h"), 5);
  const std::vector<Record> first = draw(one);
  const std::vector<Record> again = draw(one);
  const std::vector<Record> other = draw(synthetic_of(*paper_trace("F_t_h"), 6));
  ASSERT_EQ(first.size(), 10'000U);
  const auto same = [](const Record& a, const Record& b) {
    return a.arrival == b.arrival && a.offset == b.offset && a.bytes == b.bytes;
  };
  EXPECT_TRUE(std::ranges::equal(first, again, same));
  EXPECT_FALSE(std::ranges::equal(first, other, same));
  EXPECT_TRUE(std::ranges::is_sorted(first, {}, &Record::arrival));
  for (const Record& record : first) {
    ASSERT_EQ(record.bytes % kSectorBytes, 0U);
    ASSERT_EQ(record.offset % 4096, 0U);
    ASSERT_LE(record.offset + record.bytes, one.space);
  }
}

TEST(Synthetic, WhatCannotBeDrawnIsTold) {
  Synthetic none;
  none.reads.requests = none.writes.requests = 0;
  EXPECT_TRUE(check(none)->contains("no requests"));
  Synthetic odd;
  odd.writes.size_bytes.scv = -2;
  EXPECT_TRUE(check(odd)->contains("write sizes"));
}

}  // namespace
}  // namespace cairn::trace
