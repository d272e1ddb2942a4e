// SPDX-License-Identifier: Apache-2.0
#include "base/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn {
namespace {

TEST(CopyPastCache, CopiesEverySizeAtEveryAlignmentAndNothingElse) {
  constexpr std::byte kUntouched{0xee};
  std::vector<std::byte> source(9000);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const size_t size : {0, 1, 63, 64, 511, 1023, 1024, 1025, 1087, 1088, 4096, 8191}) {
    for (size_t offset = 0; offset < 66; ++offset) {
      std::vector<std::byte> target(size + 200, kUntouched);
      const MutableBytes to = MutableBytes(target).subspan(offset, size);
      const Bytes from = Bytes(source).subspan(offset * 5 % 67, size);
      copy_past_cache(to, from);
      ASSERT_TRUE(std::ranges::equal(to, from)) << size << " at " << offset;
      for (size_t i = 0; i < target.size(); ++i) {
        if (i < offset || i >= offset + size) {
          ASSERT_EQ(target[i], kUntouched) << i;
        }
      }
    }
  }
}

TEST(FetchSoon, TakesAnySize) {
  const std::vector<std::byte> bytes(10000);
  fetch_soon({});
  fetch_soon(Bytes(bytes).first(1));
  fetch_soon(bytes);
}

}  // namespace
}  // namespace cairn
