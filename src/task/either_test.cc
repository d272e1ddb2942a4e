// SPDX-License-Identifier: Apache-2.0
#include "task/either.h"

#include <gtest/gtest.h>

namespace cairn::task {
namespace {

TEST(Either, IsRequestedByTheFirstOfTheTwoWithItsReason) {
  CancelSource one;
  CancelSource other;
  Either both(one.token(), other.token());
  EXPECT_FALSE(both.token().requested());
  other.request(Errc::kClosed);
  EXPECT_TRUE(both.token().requested());
  one.request(Errc::kTimedOut);
  EXPECT_EQ(both.token().error().code(), Errc::kClosed);
  Either first(one.token(), {});
  EXPECT_EQ(first.token().error().code(), Errc::kTimedOut);
}

TEST(Either, IsRequestedFromTheStartWhenOneIs) {
  CancelSource one;
  one.request(Errc::kClosed);
  Either second({}, one.token());
  EXPECT_EQ(second.token().error().code(), Errc::kClosed);
  Either first(one.token(), {});
  EXPECT_TRUE(first.token().requested());
}

TEST(Either, LeavesNothingBehind) {
  CancelSource one;
  CancelSource other;
  {
    Either gone(one.token(), other.token());
  }
  one.request();
  other.request();
  Either never({}, {});
  EXPECT_FALSE(never.token().requested());
}

}  // namespace
}  // namespace cairn::task
