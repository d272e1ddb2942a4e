// SPDX-License-Identifier: Apache-2.0
#include "report/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cairn::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string ticks_of(const Axis& axis, const std::vector<double>& values) {
  std::string all;
  const PlacedAxis placed(axis, values);
  for (const Tick& tick : placed.ticks()) {
    all += (all.empty() ? "" : " ") + tick.text;
  }
  return all;
}
const Axis kLog{.scale = Scale::kLogarithmic};

TEST(Axis, NumbersReadShort) {
  EXPECT_EQ(short_text(0), "0");
  EXPECT_EQ(short_text(0.1 + 0.2), "0.3");
  EXPECT_EQ(short_text(9999), "9999");
  EXPECT_EQ(short_text(12'000), "12k");
  EXPECT_EQ(short_text(1'500'000), "1.5M");
  EXPECT_EQ(short_text(-2e9), "-2G");
  EXPECT_EQ(short_text(kNan), "?");
}

TEST(Axis, LinearTicksAreRoundAndBeginAtZero) {
  EXPECT_EQ(ticks_of({}, {3, 97}), "0 20 40 60 80 100");
  EXPECT_EQ(ticks_of({}, {0.3}), "0 0.1 0.2 0.3");
  EXPECT_EQ(ticks_of({}, {-40, 55}), "-40 -20 0 20 40 60");
  EXPECT_EQ(ticks_of({.min = 90, .max = 100}, {95}), "90 92 94 96 98 100");
}

TEST(Axis, LogarithmicTicksArePowersAndWithFewDecadesTheirParts) {
  EXPECT_EQ(ticks_of(kLog, {30, 900}), "20 50 100 200 500 1000");
  EXPECT_EQ(ticks_of(kLog, {1, 1e6}), "1 10 100 1000 10k 100k 1M");
}

TEST(Axis, ValuesWithoutAPlaceDoNotCount) {
  EXPECT_EQ(ticks_of({}, {kNan, kInfinity, 10}), "0 2 4 6 8 10");
  EXPECT_EQ(ticks_of(kLog, {0, -3, kNan, 10, 1000}), "10 20 50 100 200 500 1000");
}

TEST(Axis, WithoutValuesThereIsStillARange) {
  for (const std::vector<double>& values : {std::vector<double>{}, {kNan}, {0, 0}}) {
    for (const Scale scale : {Scale::kLinear, Scale::kLogarithmic}) {
      const PlacedAxis axis({.scale = scale}, values);
      EXPECT_LT(axis.low(), axis.high());
      EXPECT_GE(axis.ticks().size(), 2U);
      EXPECT_TRUE(std::isfinite(axis.place(1)));
    }
  }
  EXPECT_LT(PlacedAxis({.min = 5, .max = 5}, {}).low(), 6);
  EXPECT_GT(PlacedAxis({.min = 5, .max = -5}, {}).high(), 5);
}

TEST(Axis, ExtremeValuesMakeFewTicks) {
  for (const Scale scale : {Scale::kLinear, Scale::kLogarithmic}) {
    for (const double size : {1e100, 1e300, 1.7e308}) {
      const std::vector<double> values = {1 / size, size, -size};
      const PlacedAxis axis({.scale = scale}, values);
      EXPECT_LE(axis.ticks().size(), 20U);
      EXPECT_TRUE(std::isfinite(axis.place(1)));
    }
  }
}

TEST(Axis, PlacesAreShares) {
  const std::vector<double> values = {10, 1000};
  const PlacedAxis axis(kLog, values);
  EXPECT_DOUBLE_EQ(axis.place(10), 0);
  EXPECT_DOUBLE_EQ(axis.place(100), 0.5);
  EXPECT_DOUBLE_EQ(axis.place(1000), 1);
}

TEST(Axis, TicksOfOnesOwn) {
  const Axis sizes{.scale = Scale::kLogarithmic, .ticks = {{512, "512"}, {131072, "128K"}}};
  EXPECT_EQ(ticks_of(sizes, {4096}), "512 128K");
}

}  // namespace
}  // namespace cairn::report
