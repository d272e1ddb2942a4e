// SPDX-License-Identifier: Apache-2.0
#include "share/trade_wire_format.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::share {
namespace {

template <class T>
void expect_one_form(const T& message) {
  const std::string bytes = encode(message);
  const Result<T> back = decode<T>(as_bytes(bytes));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(encode(*back), bytes);
  EXPECT_EQ(decode<T>(as_bytes(bytes + "x")).error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode<T>(as_bytes(bytes).first(bytes.size() - 1)).error().code(), Errc::kCorrupt);
}

TEST(TradeWireFormat, EachMessageHasOneForm) {
  expect_one_form(JoinRequest{.volume = "vol1", .client = "host-1", .trades = true});
  expect_one_form(JoinReply{
      .market = 7,
      .ticket = 8,
      .places = {
          {.uri = "nvme-tcp://a/b", .drive = DriveId(3), .box = "b1", .port = 1, .index = 2}}});
  expect_one_form(TradeRequest{
      .market = 7,
      .ticket = 8,
      .requests = {{.drive = DriveId(3), .auction = 9, .epoch = 10, .now = 4096, .next = 8192}}});
  expect_one_form(TradeReply{
      .grants = {{.drive = DriveId(3), .auction = 9, .epoch = 10, .granted = 5, .left = 20_ms}},
      .drives = {{.drive = DriveId(3), .write_cost_x10 = 20, .congestion = 1_ms}}});
  expect_one_form(LeaveRequest{.market = 7, .ticket = 8});
}

TEST(TradeWireFormat, NumbersAreLittleEndianAndTextsHaveTheirLength) {
  EXPECT_EQ(encode(JoinRequest{.volume = "v", .client = "c", .trades = true}),
            std::string("\1\0\0\0v\1\0\0\0c\1", 11));
  EXPECT_EQ(encode(LeaveRequest{.market = 258, .ticket = 3}),
            std::string("\2\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16));
}

}  // namespace
}  // namespace cairn::share
