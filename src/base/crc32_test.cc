// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Crc32, HasTheKnownCheckValue) { EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926u); }
TEST(Crc32, OfNothingIsZero) { EXPECT_EQ(crc32({}), 0u); }

}  // namespace
}  // namespace cairn
