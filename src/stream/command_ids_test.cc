// SPDX-License-Identifier: Apache-2.0
#include "stream/command_ids.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "base/rng.h"

namespace cairn::stream {
namespace {

TEST(CommandIds, AnIdInUseIsRefused) {
  CommandIds ids(4);
  EXPECT_TRUE(ids.add(0xffff));
  EXPECT_FALSE(ids.add(0xffff));
  ids.remove(0xffff);
  EXPECT_TRUE(ids.add(0xffff));
}

TEST(CommandIds, GrowingKeepsThoseInUse) {
  CommandIds ids(2);
  EXPECT_TRUE(ids.add(3));
  EXPECT_TRUE(ids.add(0x8003));
  ids.reserve(100);
  EXPECT_FALSE(ids.add(3));
  EXPECT_FALSE(ids.add(0x8003));
  EXPECT_EQ(ids.size(), 2u);
}

TEST(CommandIds, AgreesWithASetWhateverComesAndGoes) {
  constexpr size_t kCapacity = 136;
  CommandIds ids(kCapacity);
  std::set<uint16_t> model;
  Rng rng(7);
  for (int i = 0; i < 200'000; ++i) {
    // Few values, in clusters and with Linux's generation bits on top, so that they collide.
    const auto id = static_cast<uint16_t>(rng.below(160) | rng.below(4) << 12);
    EXPECT_EQ(ids.contains(id), model.contains(id));
    if (model.contains(id)) {
      EXPECT_FALSE(ids.add(id));
      ids.remove(id);
      model.erase(id);
    } else if (model.size() < kCapacity) {
      EXPECT_TRUE(ids.add(id));
      model.insert(id);
    }
    ASSERT_EQ(ids.size(), model.size());
  }
}

}  // namespace
}  // namespace cairn::stream
