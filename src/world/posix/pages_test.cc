// SPDX-License-Identifier: Apache-2.0
#include "world/posix/pages.h"

#include <gtest/gtest.h>

#include <bit>

namespace cairn::posix {
namespace {

constexpr uint64_t kKiB = 1024;

TEST(Pages, HaveAPowerOfTwoOfBytes) {
  EXPECT_TRUE(std::has_single_bit(page_size()));
  EXPECT_GE(page_size(), 4 * kKiB);
}

TEST(Pages, OfARangeLieWhollyInIt) {
  const PageRange some = whole_pages(1, 130 * kKiB, 64 * kKiB);
  EXPECT_EQ(some.begin, 64 * kKiB);
  EXPECT_EQ(some.end, 128 * kKiB);
  const PageRange all = whole_pages(8 * kKiB, 16 * kKiB, 4 * kKiB);
  EXPECT_EQ(all.begin, 8 * kKiB);
  EXPECT_EQ(all.end, 16 * kKiB);
}

// A block of 4 KiB at the beginning of a page of 64 KiB: the other fifteen stay.
TEST(Pages, LargerThanARangeAreNotInIt) {
  const PageRange none = whole_pages(64 * kKiB, 68 * kKiB, 64 * kKiB);
  EXPECT_GE(none.begin, none.end);
  const PageRange middle = whole_pages(68 * kKiB, 72 * kKiB, 64 * kKiB);
  EXPECT_GE(middle.begin, middle.end);
}

}  // namespace
}  // namespace cairn::posix
