// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/slot.h"

#include <gtest/gtest.h>

#include "kv/ring/view.h"

namespace cairn::kv::ring {
namespace {

// As `redis-cli cluster keyslot` of Redis 7.0 says.
TEST(Slot, IsThatOfRedis) {
  EXPECT_EQ(slot_of("123456789"), 12739U);
  EXPECT_EQ(slot_of("foo"), 12182U);
  EXPECT_EQ(slot_of("bar"), 5061U);
  EXPECT_EQ(slot_of(""), 0U);
}

TEST(Slot, IsThatOfTheTagIfThereIsOne) {
  EXPECT_EQ(slot_of("user:{foo}:name"), slot_of("foo"));
  EXPECT_EQ(slot_of("{foo}{bar}"), slot_of("foo"));
  EXPECT_EQ(slot_of("a{{foo}}"), slot_of("{foo"));
  EXPECT_NE(slot_of("{}foo"), slot_of("foo"));
  EXPECT_NE(slot_of("a{foo"), slot_of("foo"));
}

TEST(Slot, HasOnePlaceAndSlotsLieInTheirOrder) {
  EXPECT_EQ(hash_of("foo"), place_of_slot(12182));
  EXPECT_LT(place_of_slot(0), place_of_slot(1));
  EXPECT_LT(place_of_slot(kSlots - 2), place_of_slot(kSlots - 1));
  EXPECT_EQ(place_of_slot(kSlots - 1) >> 50, kSlots - 1);
}

}  // namespace
}  // namespace cairn::kv::ring
