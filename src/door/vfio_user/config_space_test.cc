// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/config_space.h"

#include <gtest/gtest.h>

#include <vector>

#include "door/vfio_user/config_format.h"

namespace cairn::door::vfio_user {
namespace {

template <class T>
T read(const ConfigSpace& space, uint64_t at) {
  T value{};
  space.read(at, std::as_writable_bytes(std::span<T, 1>(&value, 1)));
  return value;
}
template <class T>
bool write(ConfigSpace& space, uint64_t at, T value) {
  return space.write(at, std::as_bytes(std::span<const T, 1>(&value, 1)));
}

TEST(ConfigSpace, IsThatOfAnNvmeController) {
  const ConfigSpace space;
  EXPECT_EQ(read<uint32_t>(space, 0), 0xca10'1b36u);
  EXPECT_EQ(read<uint32_t>(space, 8) >> 8, 0x010802u);
  EXPECT_EQ(read<uint8_t>(space, 0x0e), 0);  // type 0, one function
  EXPECT_EQ(read<uint32_t>(space, 0x2c), 0x1100'1af4u);
  EXPECT_EQ(read<uint8_t>(space, 0x3d), 1);
  EXPECT_EQ(read<uint16_t>(space, 0x100), 0);  // no extended capability
}

TEST(ConfigSpace, ListsPowerMsixAndExpress) {
  const ConfigSpace space;
  EXPECT_NE(read<uint16_t>(space, 6) & 0x10, 0);
  std::vector<int> found;
  for (uint8_t at = read<uint8_t>(space, 0x34); at != 0; at = read<uint8_t>(space, at + 1)) {
    found.push_back(read<uint8_t>(space, at));
    ASSERT_LE(found.size(), 8u);
  }
  EXPECT_EQ(found, (std::vector<int>{0x01, 0x11, 0x10}));
}

TEST(ConfigSpace, TellsTheSizeOfItsBars) {
  ConfigSpace space;
  for (uint64_t at = 0x10; at < 0x28; at += 4) write<uint32_t>(space, at, ~0u);
  EXPECT_EQ(read<uint64_t>(space, 0x10), 0xffff'ffff'ffff'c004u);
  EXPECT_EQ(read<uint64_t>(space, 0x18), 0u);
  EXPECT_EQ(read<uint32_t>(space, 0x20), 0xffff'e000u);
  EXPECT_EQ(read<uint32_t>(space, 0x24), 0u);
  write<uint64_t>(space, 0x10, 0x12'3456'7890);
  EXPECT_EQ(read<uint64_t>(space, 0x10), 0x12'3456'4004u);
}

TEST(ConfigSpace, WritesChangeWhatSoftwareMayChange) {
  ConfigSpace space;
  const ConfigSpace fresh;
  const std::vector<std::byte> ones(kConfigSize, std::byte{0xff});
  space.write(0, ones);
  EXPECT_EQ(read<uint32_t>(space, 0), read<uint32_t>(fresh, 0));
  EXPECT_EQ(read<uint16_t>(space, kCommandAt), 0x0546);
  EXPECT_EQ(read<uint16_t>(space, kStatusAt), kStatusCapabilities);
  EXPECT_EQ(read<uint32_t>(space, 8), read<uint32_t>(fresh, 8));
  EXPECT_EQ(read<uint16_t>(space, kMsixControlAt), 0xc000 | (kVectors - 1));
  EXPECT_EQ(read<uint16_t>(space, kPowerControlAt), 0x000b);
  EXPECT_EQ(read<uint16_t>(space, kExpressControlAt), 0x7fff);
  EXPECT_EQ(read<uint32_t>(space, kConfigSize - 4), 0u);
}

TEST(ConfigSpace, AWriteOfAnyShapeCanAskForAReset) {
  ConfigSpace space;
  EXPECT_TRUE(write<uint16_t>(space, kExpressControlAt, 0x8000));
  EXPECT_TRUE(write<uint8_t>(space, kExpressControlAt + 1, 0x80));
  EXPECT_TRUE(write<uint32_t>(space, kExpressControlAt - 2, 0x8000'0000));
  EXPECT_FALSE(write<uint8_t>(space, kExpressControlAt, 0x80));
  EXPECT_FALSE(write<uint16_t>(space, kExpressControlAt, 0x7fff));
  EXPECT_FALSE(write<uint16_t>(space, kExpressControlAt + 2, 0x8080));
  EXPECT_EQ(read<uint16_t>(space, kExpressControlAt), 0x7fff);
}

TEST(ConfigSpace, SaysHowInterruptsGo) {
  ConfigSpace space;
  EXPECT_FALSE(space.is_msix_enabled());
  EXPECT_FALSE(space.is_msix_masked());
  EXPECT_FALSE(space.is_intx_disabled());
  write<uint16_t>(space, kMsixControlAt, kMsixMaskAll);
  EXPECT_FALSE(space.is_msix_masked());
  write<uint16_t>(space, kMsixControlAt, kMsixMaskAll | kMsixEnable);
  EXPECT_TRUE(space.is_msix_masked());
  write<uint16_t>(space, kCommandAt, kCommandNoIntx);
  EXPECT_TRUE(space.is_intx_disabled());
  space.show_interrupt(true);
  EXPECT_EQ(read<uint16_t>(space, kStatusAt), kStatusCapabilities | kStatusInterrupt);
  space.show_interrupt(false);
  EXPECT_EQ(read<uint16_t>(space, kStatusAt), kStatusCapabilities);
}

TEST(ConfigSpace, ASuccessorTakesOverWhatSoftwareWroteAndNothingElse) {
  ConfigSpace before;
  write<uint16_t>(before, kCommandAt, kCommandMaster | kCommandMemory);
  write<uint64_t>(before, kBar0At, 0xfe00'0000);
  ConfigSpace after;
  write<uint16_t>(after, kCommandAt, kCommandNoIntx);
  after.load(before.state());
  EXPECT_TRUE(std::ranges::equal(before.state(), after.state()));
  const std::vector<std::byte> hostile(ConfigSpace::kStateSize, std::byte{0xff});
  after.load(hostile);
  EXPECT_EQ(read<uint32_t>(after, 0), 0xca10'1b36u);
}

}  // namespace
}  // namespace cairn::door::vfio_user
