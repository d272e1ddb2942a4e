// SPDX-License-Identifier: Apache-2.0
#include "arbiter/record_format.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace cairn::arbiter {
namespace {

VolumeRecord some_volume() {
  return {.id = VolumeId(7),
          .name = "vol0",
          .extents = 11,
          .replicas = 3,
          .weights = volume::kPack,
          .epoch = volume::Epoch(4),
          .holder = "host.1",
          .is_clean = false,
          .is_leaving = true,
          .family = VolumeId(3),
          .origin = VolumeId(5),
          .is_snapshot = false,
          .made = 1'700'000'000};
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

DriveRecord some_drive() {
  return {.info = {.id = MegaVolId(0x3ff),
                   .uuid = {1, 2},
                   .uri = "nvme-tcp://10.0.0.1/nqn",
                   .box = "box1",
                   .rack = "",
                   .extents = 99,
                   .preference = -5,
                   .is_leaving = true},
          .unfenced = {}};
}

DriveRecord some_unfenced_drive() {
  DriveRecord drive = some_drive();
  drive.unfenced = {{kOfArbiters, "arbiter.1"}, {VolumeId(7), "host.1"}};
  return drive;
}

MapChunk some_chunk() {
  MapChunk chunk(kChunkEntries);
  chunk[0].add({.mega_vol = MegaVolId(1), .extent = 2});
  chunk[255].add({.mega_vol = MegaVolId(3), .extent = 4});
  chunk[255].add({.mega_vol = MegaVolId(1), .extent = 5, .is_stale = true});
  return chunk;
}

TEST(Records, AreReadAsTheyWereWritten) {
  const PoolRecord pool{.uuid = {9}, .extent_bytes = 65536, .next_volume = 3};
  EXPECT_EQ(*decode_pool(as_bytes(encode(pool))), pool);
  EXPECT_EQ(*decode_drive(as_bytes(encode(some_drive()))), some_drive());
  EXPECT_EQ(*decode_drive(as_bytes(encode(some_unfenced_drive()))), some_unfenced_drive());
  EXPECT_EQ(*decode_volume(as_bytes(encode(some_volume()))), some_volume());
  EXPECT_EQ(*decode_map(as_bytes(encode(some_chunk()))), some_chunk());
  const std::vector<uint32_t> extents = {1, 77, volume::kMegaVolExtentsMax - 1};
  EXPECT_EQ(*decode_cleaning(as_bytes(encode_cleaning(extents))), extents);
}

TEST(Records, AChunkOfTheMapIsSixteenBytesAnExtent) {
  const std::string bytes = encode(some_chunk());
  EXPECT_EQ(bytes.size(), 8 + 16 * kChunkEntries);
  EXPECT_EQ(bytes.substr(0, 4), std::string("\x04\x01\0\0", 4));
}

TEST(Records, DamageToAnyByteIsFound) {
  for (const std::string& good :
       {encode(some_drive()), encode(some_unfenced_drive()), encode(some_volume()),
        encode(some_chunk()), encode_cleaning({5})}) {
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 0x20);
      EXPECT_FALSE(decode_drive(as_bytes(bad)) || decode_volume(as_bytes(bad)) ||
                   decode_map(as_bytes(bad)) || decode_cleaning(as_bytes(bad)))
          << i;
    }
    EXPECT_FALSE(decode_map(as_bytes(good.substr(0, good.size() - 1))));
  }
}

TEST(Records, AShareIsReadAsItWasWrittenAndMakesSense) {
  const ShareRecord share{.id = VolumeId(7), .terms = {.weight = 4, .floor = 100, .cap = 200}};
  const std::string good = encode(share);
  EXPECT_EQ(decode_share(as_bytes(good)).value(), share);
  EXPECT_EQ(share_key("vol0"), "flint/share/vol0");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    EXPECT_FALSE(decode_share(as_bytes(bad))) << i;
  }
  ShareRecord senseless = share;
  senseless.terms.weight = 0;
  EXPECT_EQ(decode_share(as_bytes(encode(senseless))).error().code(), Errc::kCorrupt);
  senseless.terms = {.floor = 200, .cap = 100};
  EXPECT_EQ(decode_share(as_bytes(encode(senseless))).error().code(), Errc::kCorrupt);
}

TEST(Records, ThoseOfAnotherVersionSaySo) {
  std::string bytes = encode(some_volume());
  bytes[1] = 3;
  EXPECT_EQ(decode_volume(as_bytes(bytes)).error().code(), Errc::kUnsupported);
}

// Its bytes, and those that a former version wrote.
TEST(Records, AVolumeOfVersionOneIsReadAsOneWithoutSnapshots) {
  const std::string body =
      "07000000000000000400000076"
      "6f6c300b00000003000000"
      "18fcffff18fcffff0000000000000000f4010000"
      "0400000000000000"
      "06000000686f73742e31"
      "0001";
  const std::string family =
      "03000000000000000500000000000000"
      "00"
      "00f1536500000000";
  EXPECT_EQ(encode(some_volume()).substr(8), from_hex(body + family));
  const std::string first = from_hex("03010000b6c28255" + body);
  const Result<VolumeRecord> read = decode_volume(as_bytes(first));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->family, read->id);
  EXPECT_EQ(read->name, "vol0");
  EXPECT_FALSE(read->is_snapshot);
  EXPECT_TRUE(read->is_leaving);
}

TEST(Records, NumbersThatMakeNoSenseAreRefused) {
  const auto is_refused = [](auto change) {
    VolumeRecord record = some_volume();
    change(record);
    const Result<VolumeRecord> read = decode_volume(as_bytes(encode(record)));
    return !read && read.error() == Errc::kCorrupt;
  };
  EXPECT_FALSE(is_refused([](VolumeRecord&) {}));
  EXPECT_TRUE(is_refused([](VolumeRecord& record) { record.name = "a/b"; }));
  EXPECT_TRUE(is_refused([](VolumeRecord& record) { record.name = "a@b"; }));
  EXPECT_TRUE(is_refused([](VolumeRecord& record) { record.is_snapshot = true; }));
  EXPECT_FALSE(is_refused([](VolumeRecord& record) {
    record.is_snapshot = true;
    record.name = "a@b";
  }));
  EXPECT_TRUE(is_refused([](VolumeRecord& record) { record.family = {}; }));
  EXPECT_TRUE(is_refused([](VolumeRecord& record) { record.extents = 1; }));
  EXPECT_TRUE(is_refused([](VolumeRecord& record) { record.replicas = 4; }));
  EXPECT_TRUE(is_refused([](VolumeRecord& record) { record.weights.busy = 1'000'000; }));
  DriveRecord drive = some_drive();
  drive.info.extents = 1;
  EXPECT_EQ(decode_drive(as_bytes(encode(drive))).error().code(), Errc::kCorrupt);
  drive = some_unfenced_drive();
  drive.unfenced[VolumeId(7)] = "";
  EXPECT_EQ(decode_drive(as_bytes(encode(drive))).error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode_cleaning(as_bytes(encode_cleaning({0}))).error().code(), Errc::kCorrupt);
}

TEST(Keys, AreReadAsTheyWereWritten) {
  const std::string map = map_key(VolumeId(0xabc), 7);
  EXPECT_EQ(map, "flint/map/0000000000000abc/00000007");
  EXPECT_EQ(parse_map_key(map)->volume, VolumeId(0xabc));
  EXPECT_EQ(parse_map_key(map)->chunk, 7U);
  EXPECT_EQ(copy_key(VolumeId(0xabc), 7), "flint/copy/0000000000000abc/00000007");
  EXPECT_EQ(parse_map_key(copy_key(VolumeId(0xabc), 7))->volume, VolumeId(0xabc));
  const std::string cleaning = cleaning_key(MegaVolId(0x2a), 9);
  EXPECT_EQ(cleaning, "flint/cleaning/02a/0000000000000009");
  EXPECT_EQ(parse_cleaning_key(cleaning)->mega_vol, MegaVolId(0x2a));
  EXPECT_EQ(parse_cleaning_key(cleaning)->number, 9U);
  for (const char* bad : {"flint/map/", "flint/map/1/2", "flint/map/0000000000000abc/0000000g",
                          "flint/map/0000000000000ABC/00000007"}) {
    EXPECT_EQ(parse_map_key(bad).error().code(), Errc::kCorrupt) << bad;
  }
}

}  // namespace
}  // namespace cairn::arbiter
