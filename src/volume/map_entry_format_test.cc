// SPDX-License-Identifier: Apache-2.0
#include "volume/map_entry_format.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace cairn::volume {
namespace {

Leg leg(uint16_t mega_vol, uint32_t extent, bool is_stale = false) {
  return {.mega_vol = MegaVolId(mega_vol), .extent = extent, .is_stale = is_stale};
}

MapEntry three_legs() {
  MapEntry entry;
  entry.add(leg(1023, kMegaVolExtentsMax - 1));
  entry.add(leg(0, 1, true));
  entry.add(leg(0x102, 0x3040506));
  return entry;
}

std::array<std::byte, MapEntry::kSize> bytes_of(const MapEntry& entry) {
  std::array<std::byte, MapEntry::kSize> bytes{};
  entry.store(bytes);
  return bytes;
}

TEST(MapEntry, HoldsThreeLegsInSixteenBytes) {
  const MapEntry entry = three_legs();
  EXPECT_EQ(sizeof entry, 16U);
  ASSERT_EQ(entry.size(), 3U);
  EXPECT_EQ(entry.leg(0), leg(1023, kMegaVolExtentsMax - 1));
  EXPECT_EQ(entry.leg(1), leg(0, 1, true));
  EXPECT_EQ(entry.leg(2), leg(0x102, 0x3040506));
  EXPECT_EQ(entry.in_sync(), 2U);
  EXPECT_EQ(entry.find(MegaVolId(0x102)), 2U);
  EXPECT_EQ(entry.find(MegaVolId(7)), 3U);
}

TEST(MapEntry, ALegLeavesAndTheOthersStayAsTheyWere) {
  MapEntry entry = three_legs();
  entry.remove(0);
  ASSERT_EQ(entry.size(), 2U);
  EXPECT_EQ(entry.leg(0), leg(0, 1, true));
  EXPECT_EQ(entry.leg(1), leg(0x102, 0x3040506));
  entry.set_stale(0, false);
  entry.set_stale(1, true);
  EXPECT_EQ(entry.leg(0), leg(0, 1));
  EXPECT_EQ(entry.leg(1), leg(0x102, 0x3040506, true));
  entry.remove(1);
  entry.remove(0);
  EXPECT_EQ(entry, MapEntry());
}

TEST(MapEntry, BytesAreAsTheyWereAndGoldenOnesStay) {
  const auto bytes = bytes_of(three_legs());
  constexpr std::array<uint8_t, 16> kGolden = {0xff, 0xff, 0xff, 0xff, 0x3f, 0x01, 0,    0,
                                               0x00, 0x00, 0x06, 0x05, 0x04, 0x23, 0x10, 0x0b};
  for (size_t i = 0; i < kGolden.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), kGolden[i]) << i;
  }
  const Result<MapEntry> read = MapEntry::load(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, three_legs());
}

TEST(MapEntry, BytesThatMakeNoSenseAreRefused) {
  const auto is_refused = [](auto change) {
    auto bytes = bytes_of(three_legs());
    change(bytes);
    const Result<MapEntry> read = MapEntry::load(bytes);
    return !read && read.error() == Errc::kCorrupt;
  };
  EXPECT_FALSE(is_refused([](auto&) {}));
  EXPECT_TRUE(is_refused([](auto& bytes) { bytes[15] |= std::byte{0x80}; }));
  EXPECT_TRUE(is_refused([](auto& bytes) { bytes[15] = std::byte{0x02}; })) << "a leg too many";
  EXPECT_TRUE(is_refused([](auto& bytes) { bytes[15] |= std::byte{0x1c}; })) << "all are stale";
  EXPECT_TRUE(is_refused([](auto& bytes) { bytes[4] = std::byte{0xff}; })) << "no such drive";
  EXPECT_TRUE(is_refused([](auto& bytes) { bytes[5] = std::byte{0}; })) << "the label's extent";
  EXPECT_TRUE(is_refused([](auto& bytes) {
    std::copy(bytes.begin(), bytes.begin() + 5, bytes.begin() + 10);
  })) << "two legs on one drive";
}

}  // namespace
}  // namespace cairn::volume
