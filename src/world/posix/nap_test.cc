// SPDX-License-Identifier: Apache-2.0
#include "world/posix/nap.h"

#include <gtest/gtest.h>

namespace cairn::posix {
namespace {

TEST(Nap, OffNeverNaps) {
  Nap nap(Duration{0});
  nap.waited(1_us);
  EXPECT_FALSE(nap.is_due(true));
}

TEST(Nap, OnlyACoreThatIsWokenOftenNaps) {
  Nap nap(100_us);
  EXPECT_FALSE(nap.is_due(true));
  nap.waited(20_us);
  EXPECT_TRUE(nap.is_due(true));
  EXPECT_FALSE(nap.is_due(false));
  nap.waited(200_us);
  EXPECT_FALSE(nap.is_due(true)) << "it is woken seldom";
}

TEST(Nap, GoesOnWhileItFindsWork) {
  Nap nap(100_us);
  nap.waited(20_us);
  nap.napped(true);
  EXPECT_TRUE(nap.is_due(true));
  nap.napped(false);
  EXPECT_FALSE(nap.is_due(true));
}

}  // namespace
}  // namespace cairn::posix
