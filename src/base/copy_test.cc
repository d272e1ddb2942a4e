// SPDX-License-Identifier: Apache-2.0
#include "base/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
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

TEST(FetchSoon, FetchesEachLineOfTheFirst4KiBOnceAndNoOther) {
  constexpr uintptr_t kLine = 64;
  const std::vector<std::byte> bytes(10000);
  for (const size_t size : {0, 1, 63, 64, 65, 4095, 4096, 4097, 9900}) {
    for (size_t offset = 0; offset < 66; ++offset) {
      const Bytes wanted = Bytes(bytes).subspan(offset, size);
      std::vector<uintptr_t> lines;
      for_each_line_to_fetch(wanted, [&](const std::byte* at) {
        ASSERT_TRUE(at >= wanted.data() && at < wanted.data() + size) << size << " at " << offset;
        lines.push_back(reinterpret_cast<uintptr_t>(at) / kLine);
      });
      std::vector<uintptr_t> expected;
      const auto begin = reinterpret_cast<uintptr_t>(wanted.data());
      const uintptr_t end = begin + std::min<size_t>(size, 4096);
      for (uintptr_t line = begin / kLine; line * kLine < end && size > 0; ++line) {
        expected.push_back(line);
      }
      ASSERT_EQ(lines, expected) << size << " at " << offset;
    }
  }
}

}  // namespace
}  // namespace cairn
