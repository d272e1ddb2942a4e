// SPDX-License-Identifier: Apache-2.0
#include "share/slices.h"

#include <gtest/gtest.h>

#include <optional>

namespace cairn::share {
namespace {

Time at(int64_t ms) { return Time{ms * 1'000'000}; }

TEST(Slices, WhoWasAtRestBorrowsALittleAndPaysItBack) {
  Slices slices{DriveId(3)};
  EXPECT_FALSE(slices.take(65536, at(1)));
  EXPECT_TRUE(slices.borrow(65536, at(1)));
  // While that is under way, or owed, nothing more is lent.
  EXPECT_FALSE(slices.borrow(4096, at(1)));
  slices.done();
  EXPECT_FALSE(slices.borrow(4096, at(2)));
  const std::optional<SliceRequest> request = slices.request(at(60));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->drive, DriveId(3));
  // The next epoch pays it back.
  slices.granted({.drive = DriveId(3),
                  .auction = 1,
                  .epoch = 5,
                  .granted = 65536 + 8192,
                  .equal = 1,
                  .left = 50_ms},
                 at(61));
  EXPECT_EQ(slices.room(), 8192U);
  EXPECT_TRUE(slices.take(8192, at(62)));
  slices.done();
  EXPECT_TRUE(slices.borrow(4096, at(63)));
}

TEST(Slices, WhatIsOwedIsTakenFromGrantsOfTheSameEpoch) {
  Slices slices{DriveId(3)};
  const SliceGrant first{
      .drive = DriveId(3), .auction = 1, .epoch = 5, .granted = 4096, .equal = 1, .left = 50_ms};
  slices.granted(first, at(1));
  EXPECT_TRUE(slices.take(4096, at(2)));
  slices.done();
  EXPECT_FALSE(slices.take(4096, at(3)));
  EXPECT_TRUE(slices.borrow(65536, at(3)));
  slices.done();
  SliceGrant more = first;
  more.granted = 65536;
  slices.granted(more, at(4));
  EXPECT_EQ(slices.room(), 0U);
  more.granted = 65536 + 8192;
  slices.granted(more, at(5));
  EXPECT_EQ(slices.room(), 4096U);
}

TEST(Slices, WhatWasNotSentAfterAllHasItsRoomAgain) {
  Slices slices{DriveId(3)};
  slices.granted(
      {.drive = DriveId(3), .auction = 1, .epoch = 5, .granted = 8192, .equal = 1, .left = 50_ms},
      at(1));
  EXPECT_TRUE(slices.take(8192, at(2)));
  EXPECT_EQ(slices.room(), 0U);
  slices.give_up(8192);
  EXPECT_EQ(slices.room(), 8192U);
}

}  // namespace
}  // namespace cairn::share
