// SPDX-License-Identifier: Apache-2.0
#include "rack/record_format.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::rack {
namespace {

const Endpoint kPlace = {.address = "10.0.0.7:4420", .nqn = "nqn.2026-11.io.cairn:a", .tls = true};

Offer an_offer() {
  return {.box = "[::1]:4420",
          .shelf = "d0",
          .place = kPlace,
          .spare = {.bytes = 3 * kUnit, .iops = 5, .bandwidth = 7},
          .expires_ms = 99};
}

DriveRecord a_drive() {
  const Leg leg{.id = {1, 2, 3},
                .box = "b",
                .shelf = "d0",
                .place = kPlace,
                .amount = {.bytes = kUnit},
                .nsid = 4};
  return {.name = "vm-1",
          .raid = Raid::kMirror,
          .bytes = 5,
          .owner = "nqn.2026-11.io.cairn:host",
          .connect = "queues=4",
          .is_leaving = true,
          .legs = {leg, leg}};
}

SpaceRequest a_request() {
  return {.verb = SpaceRequest::Verb::kReserve,
          .id = {9},
          .drive = "vm",
          .shelf = "d0",
          .amount = {.bytes = kUnit, .iops = 2, .bandwidth = 3}};
}

TEST(RackRecord, EachComesBackAsItWas) {
  EXPECT_EQ(decode_offer(as_bytes(encode(an_offer()))), an_offer());
  EXPECT_EQ(decode_drive(as_bytes(encode(a_drive()))), a_drive());
  EXPECT_EQ(decode_request(as_bytes(encode(a_request()))), a_request());
  const SpaceRequest release{.verb = SpaceRequest::Verb::kRelease, .id = {9}};
  EXPECT_EQ(decode_request(as_bytes(encode(release))), release);
}

TEST(RackRecord, RequestIsWholeDwordsAndSmall) {
  SpaceRequest request = a_request();
  for (size_t size = 1; size <= kDriveNameMax; ++size) {
    request.drive = std::string(size, 'n');
    const std::string bytes = encode(request);
    EXPECT_EQ(bytes.size() % 4, 0u);
    EXPECT_LE(bytes.size(), kRequestMax);
    EXPECT_EQ(decode_request(as_bytes(bytes)), request);
  }
}

TEST(RackRecord, GoldenBytesOfARelease) {
  const std::string bytes = encode(SpaceRequest{.verb = SpaceRequest::Verb::kRelease});
  EXPECT_EQ(bytes.substr(0, 12), std::string("CRAK\x03\x01\x00\x00\x31\x00\x00\x00", 12));
  EXPECT_EQ(bytes.size(), 16u + 52u);
  EXPECT_EQ(bytes[16], 2);
}

TEST(RackRecord, NoFlippedBitAndNoCutIsTaken) {
  const std::string whole = encode(a_drive());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_FALSE(decode_drive(as_bytes(flipped))) << i;
    }
    EXPECT_FALSE(decode_drive(as_bytes(whole).first(i)));
  }
  EXPECT_FALSE(decode_drive(as_bytes(whole + "x")));
  EXPECT_FALSE(decode_offer(as_bytes(whole)));
}

TEST(RackRecord, AnotherVersionIsToldApart) {
  std::string bytes = encode(an_offer());
  bytes[5] = 2;
  EXPECT_EQ(decode_offer(as_bytes(bytes)).error(), Errc::kUnsupported);
}

// Sound bytes, senseless contents: a checksum is no proof of good will.
TEST(RackRecord, NothingBeyondTheLimitsDecodes) {
  const auto refused = [](auto record, auto change, auto decode) {
    change(record);
    return decode(as_bytes(encode(record))).error() == Errc::kCorrupt;
  };
  EXPECT_TRUE(refused(an_offer(), [](Offer& o) { o.box = "a/b"; }, decode_offer));
  EXPECT_TRUE(refused(an_offer(), [](Offer& o) { o.shelf = ""; }, decode_offer));
  EXPECT_TRUE(refused(an_offer(), [](Offer& o) { o.place.address = "unix:/x"; }, decode_offer));
  EXPECT_TRUE(refused(an_offer(), [](Offer& o) { o.place.address = "1.2.3.4:0"; }, decode_offer));
  EXPECT_TRUE(refused(an_offer(), [](Offer& o) { o.place.nqn = "box"; }, decode_offer));
  EXPECT_TRUE(refused(an_offer(), [](Offer& o) { o.spare.bytes = 7; }, decode_offer));
  EXPECT_TRUE(refused(a_drive(), [](DriveRecord& d) { d.name = "a b"; }, decode_drive));
  EXPECT_TRUE(refused(a_drive(), [](DriveRecord& d) { d.owner = ""; }, decode_drive));
  EXPECT_TRUE(refused(a_drive(), [](DriveRecord& d) { d.legs[1].nsid = 0; }, decode_drive));
  EXPECT_TRUE(refused(a_drive(), [](DriveRecord& d) { d.legs.resize(9); }, decode_drive));
  EXPECT_TRUE(
      refused(a_request(), [](SpaceRequest& r) { r.amount.bytes = kUnit + 1; }, decode_request));
  EXPECT_TRUE(refused(
      a_request(), [](SpaceRequest& r) { r.verb = SpaceRequest::Verb::kRelease; }, decode_request));
}

}  // namespace
}  // namespace cairn::rack
