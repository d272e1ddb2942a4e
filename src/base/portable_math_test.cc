// SPDX-License-Identifier: Apache-2.0
#include "base/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ios>
#include <limits>
#include <numbers>

#include "base/rng.h"

namespace cairn {
namespace {

// Equal but for so many units in the last place of what is expected.
testing::AssertionResult close_to(double expected, double got, double units = 2) {
  const double away = std::nextafter(std::abs(expected), std::numeric_limits<double>::infinity());
  const double unit = away - std::abs(expected);
  if (std::abs(got - expected) <= units * unit) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << got << " is " << std::abs(got - expected) / unit << " units away from " << expected;
}

// Numbers above 0 of every size, and many near 1.
double draw(Rng& rng) {
  const double x = 0.5 + rng.uniform();
  if (rng.bernoulli(0.5)) return x;
  return std::ldexp(x, static_cast<int>(rng.below(1800)) - 900);
}

TEST(PortableMath, LogarithmsAreThoseOfTheLibrary) {
  Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    const double x = draw(rng);
    ASSERT_TRUE(close_to(std::log(x), natural_log(x))) << x;
    ASSERT_TRUE(close_to(std::log2(x), binary_log(x), 4)) << x;
  }
  const double min = std::numeric_limits<double>::denorm_min();
  EXPECT_TRUE(close_to(std::log(min), natural_log(min)));
  EXPECT_EQ(natural_log(1), 0);
  for (int i = -1074; i < 1024; ++i) EXPECT_EQ(binary_log(std::ldexp(1, i)), i);
}

TEST(PortableMath, PowersOfEAreThoseOfTheLibrary) {
  Rng rng(2);
  for (int i = 0; i < 20'000; ++i) {
    const double x = (rng.uniform() - 0.5) * (rng.bernoulli(0.5) ? 2 : 1400);
    ASSERT_TRUE(close_to(std::exp(x), natural_exp(x))) << x;
  }
  EXPECT_EQ(natural_exp(0), 1);
  EXPECT_EQ(natural_exp(-1e9), 0);
}

TEST(PortableMath, CubeRootsAreThoseOfTheLibrary) {
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    const double x = draw(rng) * (rng.bernoulli(0.5) ? 1 : -1);
    ASSERT_TRUE(close_to(std::cbrt(x), cube_root(x), 4)) << x;
  }
  EXPECT_EQ(cube_root(0), 0);
  EXPECT_EQ(cube_root(-27), -3);
}

TEST(PortableMath, CosinesAreThoseOfTheLibrary) {
  Rng rng(4);
  for (int i = 0; i < 20'000; ++i) {
    const double turns = rng.uniform();
    ASSERT_NEAR(std::cos(2 * std::numbers::pi * turns), cosine_of_turns(turns), 1e-15) << turns;
  }
  EXPECT_EQ(cosine_of_turns(0), 1);
  EXPECT_EQ(cosine_of_turns(0.25), 0);
  EXPECT_EQ(cosine_of_turns(0.5), -1);
  EXPECT_EQ(cosine_of_turns(0.75), 0);
  EXPECT_EQ(cosine_of_turns(1), 1);
}

TEST(PortableMath, WholePowersAreProducts) {
  EXPECT_EQ(whole_power(0, 0), 1);
  EXPECT_EQ(whole_power(-3, 5), -243);
  EXPECT_EQ(whole_power(0.5, 1074), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(close_to(std::pow(0.93, 255), whole_power(0.93, 255), 256));
}

// The very bits, whatever machine this is.
TEST(PortableMath, ResultsAreTheSameBitsEverywhere) {
  Rng rng(5);
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = 0.01 + 100 * rng.uniform();
    sum +=
        natural_log(x) + binary_log(x) + natural_exp(-x) + cube_root(x) + whole_power(x / 100, 3);
    sum += cosine_of_turns(rng.uniform()) + rng.exponential(x);
  }
  EXPECT_EQ(sum, 0x1.ef64178c754e1p+15) << std::hexfloat << sum;
}

}  // namespace
}  // namespace cairn
