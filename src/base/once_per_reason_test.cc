// SPDX-License-Identifier: Apache-2.0
#include "base/once_per_reason.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

const Time kStart = Time{} + 1000_s;

TEST(OncePerReason, EachReasonHasALineASecond) {
  OncePerReason lines;
  EXPECT_EQ(lines.take("no place", kStart), "");
  EXPECT_EQ(lines.take("no place", kStart + 1_ms), std::nullopt);
  EXPECT_EQ(lines.take("no key", kStart + 1_ms), "") << "another reason";
  EXPECT_EQ(lines.take("no place", kStart + 999_ms), std::nullopt);
  EXPECT_EQ(lines.take("no place", kStart + 1_s), " (and 2 more before)");
  EXPECT_EQ(lines.take("no key", kStart + 2_s), "");
}

TEST(OncePerReason, ReasonsBeyondTheMaxShareALine) {
  OncePerReason lines;
  for (size_t i = 0; i < OncePerReason::kReasonsMax; ++i) {
    EXPECT_TRUE(lines.take(fmt::format("{}", i), kStart)) << i;
  }
  EXPECT_EQ(lines.take("one", kStart), "");
  EXPECT_EQ(lines.take("another", kStart), std::nullopt);
  EXPECT_EQ(lines.take("0", kStart + 1_s), "") << "it has its own";
  EXPECT_EQ(lines.take("a third", kStart + 1_s), " (and 1 more before)");
}

}  // namespace
}  // namespace cairn
