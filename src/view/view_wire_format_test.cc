// SPDX-License-Identifier: Apache-2.0
#include "view/view_wire_format.h"

#include <gtest/gtest.h>

#include <string>

#include "view/view_testing.h"

namespace cairn::view {
namespace {

std::string hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

constexpr IoVector kVector{.session = SessionId(1),
                           .drive = 2,
                           .type = IoType::kWrite,
                           .bytes = 4096,
                           .rtt = 100_us,
                           .completed = Time{3}};

// It comes back as it was, and no part of it, and nothing longer, is understood.
template <class T>
void expect_round_trip(const T& message) {
  const std::string bytes = encode(message);
  const Result<T> back = decode<T>(as_bytes(bytes));
  ASSERT_TRUE(back);
  EXPECT_EQ(hex(encode(*back)), hex(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode<T>(as_bytes(bytes).first(size))) << size;
  }
  EXPECT_EQ(decode<T>(as_bytes(bytes + "x")).error(), Errc::kCorrupt);
}

TEST(ViewWireFormat, MessagesComeBackAsTheyWere) {
  const ComponentView drive{.id = drive_id(3), .recency = 9, .drive = DriveView{.rate = 5}};
  expect_round_trip(AttachRequest{
      .client = "host1",
      .incarnation = 5,
      .sessions = {{.id = SessionId(1), .volume = "v", .box = "b", .port = 1, .ticket = 9}}});
  expect_round_trip(AttachReply{.controller = 1,
                                .number = 2,
                                .boxes = {{.name = "b", .ports = 1, .drives = {"d"}}},
                                .sessions = {{SessionId(1), BoxId(0)}}});
  expect_round_trip(ReportRequest{.client = "host1",
                                  .controller = 1,
                                  .incarnation = 2,
                                  .number = 3,
                                  .sent = Time{-4},
                                  .dropped = 5,
                                  .vectors = {kVector, kVector}});
  expect_round_trip(ReportReply{
      .number = 1, .late = 2, .refused = 3, .changed = {{.id = drive_id(0), .counter = 4}}});
  expect_round_trip(SyncRequest{{drive_id(0)}});
  expect_round_trip(SyncReply{.controller = 1, .at = Time{2}, .components = {drive}});
  expect_round_trip(QueryRequest{"vol1"});
  expect_round_trip(WatchRequest{{{.drive = drive_id(0), .below = 3}}});
  expect_round_trip(
      Event{.watch = {.drive = drive_id(0)}, .is_below = true, .crossings = 3, .now = drive});
  expect_round_trip(
      View{.controller = 1,
           .at = Time{2},
           .boxes = {{.name = "b", .ports = 1, .drives = {"d"}}},
           .components = {drive},
           .flows = {{.client = "c", .volume = "v", .session = SessionId(1), .rtts = {{3, 4}}}},
           .offenders = {{.volume = "w",
                          .client = "d",
                          .offence = Offender::Offence::kAsksForNothing,
                          .drive = drive_id(3),
                          .used = 5,
                          .granted = 6}}});
}

TEST(ViewWireFormat, TheBytesOfABatchAreWhatTheyAlwaysWere) {
  EXPECT_EQ(hex(encode(ReportRequest{.client = "h",
                                     .controller = 1,
                                     .incarnation = 2,
                                     .number = 3,
                                     .sent = Time{4},
                                     .dropped = 5,
                                     .vectors = {kVector}})),
            "0100000068"
            "0100000000000000"
            "0200000000000000"
            "0300000000000000"
            "0400000000000000"
            "0500000000000000"
            "01000000"
            "01000000"
            "0200"
            "01"
            "00100000"
            "a086010000000000"
            "0300000000000000");
}

TEST(ViewWireFormat, WhatAViewCannotHoldIsNotUnderstood) {
  View view{.boxes = {}, .components = {{.id = drive_id(1)}, {.id = drive_id(0)}}, .flows = {}};
  EXPECT_FALSE(decode<View>(as_bytes(encode(view))));
  view.components.clear();
  view.flows = {{.client = "c", .volume = "v", .rtts = {{kRttBuckets, 1}}}};
  EXPECT_FALSE(decode<View>(as_bytes(encode(view))));
}

}  // namespace
}  // namespace cairn::view
