// SPDX-License-Identifier: Apache-2.0
#include "bench/i10/components.h"

#include <gtest/gtest.h>

namespace cairn::bench::i10 {
namespace {

TEST(Components, AddUpToTheWholeCore) {
  // 100,000 a second: 10 us of the core for each.
  const SideCost cost{.cpu_us = 8, .user_us = 3, .sending_us = 2.5, .receiving_us = 1.5};
  const Components all = components_of(cost, 100'000, 1);
  EXPECT_DOUBLE_EQ(all.application, 10);
  EXPECT_DOUBLE_EQ(all.block, 20);
  EXPECT_DOUBLE_EQ(all.net_tx, 25);
  EXPECT_DOUBLE_EQ(all.net_rx, 15);
  EXPECT_DOUBLE_EQ(all.other, 10);
  EXPECT_DOUBLE_EQ(all.idle, 20);
}

TEST(Components, AreNeverBelowZero) {
  const SideCost cost{.cpu_us = 12, .user_us = 0.5, .sending_us = 9, .receiving_us = 4};
  const Components all = components_of(cost, 100'000, 1);
  EXPECT_DOUBLE_EQ(all.application, 5);
  EXPECT_EQ(all.block, 0);
  EXPECT_EQ(all.other, 0);
  EXPECT_EQ(all.idle, 0);
}

TEST(Components, OfNothingAreIdle) {
  const Components all = components_of({}, 0, 0);
  EXPECT_EQ(all.net_tx, 0);
  EXPECT_EQ(all.idle, 100);
}

}  // namespace
}  // namespace cairn::bench::i10
