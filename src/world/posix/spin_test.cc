// SPDX-License-Identifier: Apache-2.0
#include "world/posix/spin.h"

#include <gtest/gtest.h>

namespace cairn::posix {
namespace {

TEST(Spin, OffSleepsAtOnce) {
  Spin spin(Duration{0});
  EXPECT_FALSE(spin.is_on());
  EXPECT_FALSE(spin.goes_on(true, Time{0}));
  spin.woke(Time{0}, Time{0} + 1_us);
  EXPECT_FALSE(spin.goes_on(false, Time{0} + 2_us));
}

TEST(Spin, WithoutLimitNeverSleeps) {
  Spin spin(Duration::max());
  EXPECT_TRUE(spin.goes_on(false, Time{0}));
  EXPECT_TRUE(spin.goes_on(false, Time{0} + 3600_s));
}

TEST(Spin, LooksForTheLimitAfterTheLastWork) {
  Spin spin(64_us);
  EXPECT_TRUE(spin.goes_on(true, Time{0}));
  EXPECT_TRUE(spin.goes_on(false, Time{0} + 1_us));
  EXPECT_TRUE(spin.goes_on(false, Time{0} + 64_us)) << "idle since 1 us";
  EXPECT_FALSE(spin.goes_on(false, Time{0} + 65_us));
}

TEST(Spin, WorkBeginsItAnew) {
  Spin spin(64_us);
  EXPECT_TRUE(spin.goes_on(false, Time{0}));
  EXPECT_TRUE(spin.goes_on(true, Time{0} + 60_us));
  EXPECT_TRUE(spin.goes_on(false, Time{0} + 100_us));
  EXPECT_TRUE(spin.goes_on(false, Time{0} + 163_us));
  EXPECT_FALSE(spin.goes_on(false, Time{0} + 164_us));
}

TEST(Spin, LongSleepsMakeItShorterUntilItStops) {
  Spin spin(64_us);
  Duration last = spin.length();
  for (int i = 0; i < 6; ++i) {
    spin.woke(Time{0}, Time{0} + 1_s);
    EXPECT_LT(spin.length(), last);
    last = spin.length();
  }
  spin.woke(Time{0}, Time{0} + 1_s);
  EXPECT_EQ(spin.length(), Duration{0});
  EXPECT_FALSE(spin.goes_on(true, Time{0} + 2_s)) << "an idle core does not spin at all";
}

TEST(Spin, ShortSleepsMakeItLongerUpToTheLimit) {
  Spin spin(64_us);
  for (int i = 0; i < 20; ++i) spin.woke(Time{0}, Time{0} + 1_s);
  ASSERT_EQ(spin.length(), Duration{0});
  spin.woke(Time{0}, Time{0} + 20_us);
  EXPECT_EQ(spin.length(), 8_us);
  for (int i = 0; i < 20; ++i) spin.woke(Time{0}, Time{0} + 20_us);
  EXPECT_EQ(spin.length(), 64_us);
}

}  // namespace
}  // namespace cairn::posix
