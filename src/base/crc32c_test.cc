// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/crc32c_paths.h"
#include "base/rng.h"

namespace cairn {
namespace {

// Bit by bit, as the definition has it. Not inverted.
uint32_t by_definition(uint32_t state, Bytes bytes) {
  for (const std::byte byte : bytes) {
    state ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = crc32c_times_x(state);
  }
  return state;
}

std::vector<std::byte> drawn(size_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  Rng(seed).fill(bytes);
  return bytes;
}

// The vectors of RFC 3720, appendix B.4.
void expect_iscsi_vectors(auto sum) {
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(sum(bytes), 0x8a9136aaU);
  bytes.fill(std::byte{0xff});
  EXPECT_EQ(sum(bytes), 0x62a8ab43U);
  for (int i = 0; i < 32; ++i) bytes[i] = std::byte(i);
  EXPECT_EQ(sum(bytes), 0x46dd794eU);
  EXPECT_EQ(sum(as_bytes("123456789")), 0xe3069283U);
  EXPECT_EQ(sum(Bytes()), 0U);
}

TEST(Crc32c, MatchesTheIscsiVectors) {
  expect_iscsi_vectors([](Bytes bytes) { return crc32c(bytes); });
}

TEST(Crc32c, ContinuesOverPieces) {
  const std::vector<std::byte> bytes = drawn(5000, 1);
  const Bytes all(bytes);
  for (size_t cut : {0UL, 1UL, 7UL, 4096UL, 5000UL}) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all)) << cut;
  }
}

TEST(Crc32c, OfACopyIsThatOfTheOriginal) {
  const std::vector<std::byte> from = drawn(10'000, 2);
  for (const size_t size : {0UL, 1UL, 4096UL, 10'000UL}) {
    std::vector<std::byte> to(size);
    EXPECT_EQ(copy_crc32c(to, Bytes(from).first(size), 17), crc32c(Bytes(from).first(size), 17));
    EXPECT_TRUE(std::ranges::equal(to, Bytes(from).first(size)));
  }
}

TEST(Crc32cMath, PowersAreProducts) {
  uint32_t power = crc32c_power(0);
  for (uint64_t exponent = 0; exponent < 300; ++exponent) {
    EXPECT_EQ(crc32c_power(exponent), power);
    EXPECT_EQ(crc32c_product(power, crc32c_power(1000)), crc32c_power(exponent + 1000));
    power = crc32c_times_x(power);
  }
}

// Each way that this machine has, against the definition.
class Crc32cPaths : public testing::TestWithParam<Crc32cPath> {
 protected:
  void SetUp() override {
    if (!GetParam().runs_here()) GTEST_SKIP() << "this processor has no such instructions";
  }
  uint32_t add(uint32_t state, Bytes bytes) const {
    return GetParam().add(state, bytes.data(), bytes.size());
  }
  // Copies between two guards, whatever the alignment.
  uint32_t copy(uint32_t state, Bytes bytes, size_t alignment) const {
    constexpr std::byte kGuard{0xa5};
    std::vector<std::byte> to(alignment + bytes.size() + 64, kGuard);
    const uint32_t sum = GetParam().copy(state, to.data() + alignment, bytes.data(), bytes.size());
    const auto behind = std::span(to).subspan(alignment + bytes.size());
    EXPECT_TRUE(std::ranges::equal(std::span(to).subspan(alignment, bytes.size()), bytes));
    for (const std::byte byte : std::span(to).first(alignment)) EXPECT_EQ(byte, kGuard);
    for (const std::byte byte : behind) EXPECT_EQ(byte, kGuard);
    return sum;
  }
};

TEST_P(Crc32cPaths, MatchTheIscsiVectors) {
  expect_iscsi_vectors([this](Bytes bytes) { return ~add(~uint32_t{0}, bytes); });
}

TEST_P(Crc32cPaths, MatchTheDefinitionForAllSmallSizes) {
  const std::vector<std::byte> bytes = drawn(1100, 3);
  for (size_t size = 0; size <= 1030; ++size) {
    const Bytes some = Bytes(bytes).subspan(size % 65, size);
    const auto state = static_cast<uint32_t>(size * 0x9e3779b9);
    ASSERT_EQ(add(state, some), by_definition(state, some)) << size;
    ASSERT_EQ(copy(state, some, size % 67), by_definition(state, some)) << size;
  }
}

TEST_P(Crc32cPaths, MatchTheDefinitionAtAllAlignments) {
  const std::vector<std::byte> bytes = drawn(5000, 4);
  for (size_t begin = 0; begin < 64; ++begin) {
    for (const size_t size : {72UL, 600UL, 4096UL, 4224UL}) {
      const Bytes some = Bytes(bytes).subspan(begin, size);
      ASSERT_EQ(add(1, some), by_definition(1, some)) << begin << " " << size;
      ASSERT_EQ(copy(1, some, 63 - begin), by_definition(1, some)) << begin << " " << size;
    }
  }
}

TEST_P(Crc32cPaths, ContinueWhereverTheMessageIsSplit) {
  const std::vector<std::byte> bytes = drawn(200'000, 5);
  Rng rng(6);
  for (int run = 0; run < 50; ++run) {
    const Bytes all = Bytes(bytes).first(rng.below(bytes.size()));
    const uint32_t whole = by_definition(0, all);
    ASSERT_EQ(add(0, all), whole) << run;
    uint32_t state = 0;
    for (Bytes rest = all; !rest.empty();) {
      const size_t size = std::min<size_t>(rest.size(), rng.below(run % 2 == 0 ? 9000 : 300) + 1);
      state = rng.below(2) == 0 ? add(state, rest.first(size)) : copy(state, rest.first(size), 0);
      rest = rest.subspan(size);
    }
    ASSERT_EQ(state, whole) << run;
  }
}

TEST_P(Crc32cPaths, SeeEveryFlippedBit) {
  std::vector<std::byte> bytes = drawn(1500, 7);
  const uint32_t sound = add(0, bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const std::byte flip = std::byte{1} << (bit % 8);
    bytes[bit / 8] ^= flip;
    ASSERT_NE(add(0, bytes), sound) << bit;
    bytes[bit / 8] ^= flip;
  }
}

INSTANTIATE_TEST_SUITE_P(Here, Crc32cPaths, testing::ValuesIn(crc32c_paths()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
                           return name;
                         });

}  // namespace
}  // namespace cairn
