// SPDX-License-Identifier: Apache-2.0
#include "env/shared_word.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace cairn::env {
namespace {

template <class T>
class SharedWord : public testing::Test {};
using Words = testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(SharedWord, Words);

TYPED_TEST(SharedWord, IsStoredWholeAndAlone) {
  alignas(8) std::byte memory[24] = {};
  constexpr auto kValue = static_cast<TypeParam>(0x0123456789abcdef);
  store_shared<TypeParam>(memory + 8, kValue);
  shared_fence();
  EXPECT_EQ(load_shared<TypeParam>(memory + 8), kValue);
  store_shared<TypeParam>(memory + 8, std::numeric_limits<TypeParam>::max());
  for (size_t i = 0; i < sizeof(memory); ++i) {
    const bool is_inside = i >= 8 && i < 8 + sizeof(TypeParam);
    EXPECT_EQ(memory[i], is_inside ? std::byte{0xff} : std::byte{0}) << i;
  }
}

}  // namespace
}  // namespace cairn::env
