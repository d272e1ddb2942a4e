// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/piece_cursor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace cairn::fabric {
namespace {

TEST(PieceCursor, GivesEachByteOnceInOrder) {
  std::array<std::byte, 100> memory;
  const MutableBytes all = memory;
  const std::array<MutableBytes, 5> pieces = {all.subspan(0, 10), all.subspan(10, 0),
                                              all.subspan(10, 1), all.subspan(11, 60),
                                              all.subspan(71)};
  for (size_t skip = 0; skip <= 100; ++skip) {
    for (const size_t step : {1, 7, 64, 1000}) {
      PieceCursor cursor(pieces, skip);
      const std::byte* expected = memory.data() + skip;
      for (MutableBytes next = cursor.take(step); !next.empty(); next = cursor.take(step)) {
        EXPECT_EQ(next.data(), expected);
        EXPECT_LE(next.size(), step);
        expected += next.size();
      }
      EXPECT_EQ(expected, memory.data() + 100);
    }
  }
}

TEST(PieceCursor, EndsWithTheList) {
  PieceCursor none;
  EXPECT_TRUE(none.take(5).empty());
  std::array<std::byte, 4> memory;
  const MutableBytes piece = memory;
  PieceCursor past({&piece, 1}, 9);
  EXPECT_TRUE(past.take(5).empty());
  PieceCursor cursor({&piece, 1}, 0);
  EXPECT_TRUE(cursor.take(0).empty());
  EXPECT_EQ(cursor.take(9).size(), 4u);
}

}  // namespace
}  // namespace cairn::fabric
