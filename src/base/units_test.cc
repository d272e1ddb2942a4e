// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "base/ids.h"

namespace cairn {
namespace {

TEST(Units, TimePlusDurationSaturatesAtNever) {
  EXPECT_EQ(Time::never() + 5_s, Time::never());
  EXPECT_EQ(Time{10} + 5_ns, Time{15});
  EXPECT_EQ(Time{10} - Time{4}, 6_ns);
  EXPECT_EQ(Time{100} + Duration::max(), Time::never());
}

TEST(Units, PrintTheUnitThatFits) {
  EXPECT_EQ(text(950_ns), "950 ns");
  EXPECT_EQ(text(12300_ns), "12.3 us");
  EXPECT_EQ(text(Duration{0} - 4_ms), "-4 ms");
  EXPECT_EQ(text(90_s), "90 s");
  EXPECT_EQ(text_bytes(512), "512 B");
  EXPECT_EQ(text_bytes(4_KiB), "4 KiB");
  EXPECT_EQ(text_bytes(1536_MiB), "1.5 GiB");
}

TEST(Ids, OfDifferentKindsDoNotMix) {
  using Apple = Id<struct AppleTag>;
  using Pear = Id<struct PearTag>;
  static_assert(!std::is_convertible_v<Apple, Pear>);
  static_assert(!std::is_convertible_v<uint64_t, Apple>);
  static_assert(!std::equality_comparable_with<Apple, Pear>);
  EXPECT_LT(Apple(1), Apple(2));
}

}  // namespace
}  // namespace cairn
