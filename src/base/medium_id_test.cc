// SPDX-License-Identifier: Apache-2.0
#include "base/medium_id.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr uint64_t kOne = medium_id_of_one(0x1230);
constexpr uint64_t kOther = medium_id_of_one(0x4560);

TEST(MediumId, OfSeveralChangesWithAnyOfThemAndWithTheirOrder) {
  const uint64_t both = combined_medium_id(kOne, kOther);
  EXPECT_TRUE(is_medium_of_several(both));
  EXPECT_TRUE(is_other_medium(both, combined_medium_id(kOne, medium_id_of_one(0x7890))));
  EXPECT_TRUE(is_other_medium(both, combined_medium_id(kOther, kOne)));
  EXPECT_FALSE(is_other_medium(both, combined_medium_id(kOne, kOther)));
  const uint64_t three = combined_medium_id(both, kOne);
  EXPECT_TRUE(is_medium_of_several(three));
  EXPECT_TRUE(is_other_medium(three, both));
}

TEST(MediumId, OfOneMayBeAnotherAfterItWasCopied) {
  EXPECT_FALSE(is_other_medium(kOne, kOther));
  EXPECT_FALSE(is_other_medium(kOne, combined_medium_id(kOne, kOther)));
}

TEST(MediumId, OfDrivesWithLabelsIsThatOfTheFirstAndOfThoseThatLabelsDoNotProve) {
  EXPECT_EQ(labelled_medium_id(kOne, kOther), kOne);
  EXPECT_EQ(labelled_medium_id(kOne, 0), kOne);
  const uint64_t several = combined_medium_id(kOne, kOther);
  EXPECT_TRUE(is_other_medium(labelled_medium_id(kOne, several),
                              labelled_medium_id(kOne, combined_medium_id(kOther, kOne))));
}

TEST(MediumId, OfANameProvesNothing) {
  const uint64_t name = medium_id_of_name(0);
  EXPECT_TRUE(is_medium_of_name(name));
  const uint64_t both = combined_medium_id(kOne, name);
  EXPECT_TRUE(is_medium_of_name(both));
  EXPECT_FALSE(is_other_medium(both, combined_medium_id(kOther, name)));
}

TEST(MediumId, IsNotKnownIfThatOfAnyIsNot) {
  EXPECT_EQ(combined_medium_id(kOne, 0), 0u);
  EXPECT_EQ(combined_medium_id(0, kOne), 0u);
  EXPECT_FALSE(is_medium_of_name(0));
  EXPECT_FALSE(is_other_medium(combined_medium_id(kOne, kOther), 0));
  EXPECT_FALSE(is_other_medium(0, combined_medium_id(kOne, kOther)));
}

}  // namespace
}  // namespace cairn
