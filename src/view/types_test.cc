// SPDX-License-Identifier: Apache-2.0
#include "view/types.h"

#include <gtest/gtest.h>

#include "view/view_testing.h"

namespace cairn::view {
namespace {

TEST(ViewTypes, SizesFallIntoClassesOfPowersOfTwo) {
  EXPECT_EQ(size_class(0), 0u);
  EXPECT_EQ(size_class(4096), 0u);
  EXPECT_EQ(size_class(4097), 1u);
  EXPECT_EQ(size_class(131072), 5u);
  EXPECT_EQ(size_class(262144), 6u);
  EXPECT_EQ(size_class(262145), 7u);
  EXPECT_EQ(size_class(UINT32_MAX), 7u);
  EXPECT_EQ(size_class_text(5), "128 KiB");
}

TEST(ViewTypes, ABucketOfRoundTripsIsAQuarterOfAPowerOfTwoWide) {
  for (int64_t ns = 16'385; ns < (50_s).ns; ns += ns / 7) {
    const size_t bucket = rtt_bucket({ns});
    EXPECT_GT(rtt_of_bucket(bucket).ns, ns);
    EXPECT_LE(rtt_of_bucket(bucket).ns, ns + (ns / 4) + 1);
    EXPECT_LE(rtt_of_bucket(bucket - 1).ns, ns);
  }
  EXPECT_EQ(rtt_bucket({-5}), 0u);
  EXPECT_EQ(rtt_bucket(Duration::max()), kRttBuckets - 1);
}

TEST(ViewTypes, ARequestPassesOneComponentOfEachKind) {
  const auto path = path_of(BoxId(2), 1, 3);
  for (size_t kind = 0; kind < kKinds; ++kind) {
    EXPECT_EQ(path[kind].kind, static_cast<Kind>(kind));
    EXPECT_EQ(path[kind].index, kind < 3 ? 1 : 3);
  }
}

TEST(ViewTypes, BoxesThatCannotBeAreRefusedWithTheReason) {
  EXPECT_TRUE(check_box(test_box()));
  BoxSpec box = test_box();
  box.ports = 0;
  EXPECT_STREQ(check_box(box).error().what(), "a box has 1 to 256 ports");
  box = test_box();
  box.drives[1].name = box.drives[0].name;
  EXPECT_STREQ(check_box(box).error().what(), "two drives of a box have one name");
  box = test_box();
  box.drives[1].profile.bytes_per_s = 0;
  EXPECT_EQ(check_box(box).error(), Errc::kInvalid);
  box = test_box("a b");
  EXPECT_EQ(check_box(box).error(), Errc::kInvalid);
}

}  // namespace
}  // namespace cairn::view
