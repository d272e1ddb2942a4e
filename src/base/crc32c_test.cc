// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/rng.h"

namespace cairn {
namespace {

// The vectors of RFC 3720, appendix B.4.
TEST(Crc32c, MatchesTheIscsiVectors) {
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(crc32c(bytes), 0x8a9136aaU);
  bytes.fill(std::byte{0xff});
  EXPECT_EQ(crc32c(bytes), 0x62a8ab43U);
  for (int i = 0; i < 32; ++i) bytes[i] = std::byte(i);
  EXPECT_EQ(crc32c(bytes), 0x46dd794eU);
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, ContinuesOverPieces) {
  std::vector<std::byte> bytes(5000);
  Rng(1).fill(bytes);
  const Bytes all(bytes);
  for (size_t cut : {0UL, 1UL, 7UL, 4096UL, 5000UL}) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all)) << cut;
  }
}

}  // namespace
}  // namespace cairn
