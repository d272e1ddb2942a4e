// SPDX-License-Identifier: Apache-2.0
#include "model/flash/scale.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "model/flash/model.h"

namespace cairn::flash {
namespace {

TEST(FlashScale, HoldsWhatWasAskedForAndLittleMore) {
  Parameters whole;
  whole.over_provisioning = 0.2;
  for (const uint64_t bytes : {40_GiB, 80_GiB, 150_GiB}) {
    const std::optional<Parameters> scaled = scaled_to(whole, bytes);
    ASSERT_TRUE(scaled);
    EXPECT_FALSE(check(*scaled));
    EXPECT_GE(logical_bytes(*scaled), bytes);
    EXPECT_LT(logical_bytes(*scaled), bytes + bytes / 50);
    EXPECT_EQ(scaled->channels, whole.channels);
  }
}

TEST(FlashScale, TellsWhatTheModelTells) {
  Parameters small;
  small.blocks_per_plane = 64;
  small.over_provisioning = 0.2;
  const FlashModel model(small);
  EXPECT_EQ(logical_bytes(small), model.domains()[0].logical_sectors * kSectorBytes);
}

TEST(FlashScale, TinySizeIsTheSmallestDriveThereCanBe) {
  const std::optional<Parameters> scaled = scaled_to(Parameters{}, 4096);
  ASSERT_TRUE(scaled);
  EXPECT_FALSE(check(*scaled));
}

TEST(FlashScale, LargerThanTheDriveIsNothing) {
  EXPECT_FALSE(scaled_to(Parameters{}, logical_bytes(Parameters{}) + 1));
}

}  // namespace
}  // namespace cairn::flash
