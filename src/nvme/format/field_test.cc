// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/field.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "nvme/format/nqn.h"
#include "testing/nvme/hex.h"

namespace cairn::nvme {
namespace {

struct Odd {
  uint8_t first = 0;
  Le32 number;
  Le64 wide;
};
static_assert(sizeof(Odd) == 13 && offsetof(Odd, number) == 1);

TEST(Field, NumbersAreLittleEndianAtAnyOffset) {
  const Odd odd{.first = 1, .number = 0x05040302, .wide = 0x0d0c0b0a09080706};
  EXPECT_EQ(wire(odd), hex("01 02030405 060708090a0b0c0d"));
  const auto back = load<Odd>(hex("01 02030405 060708090a0b0c0d"));
  EXPECT_EQ(back.number, 0x05040302u);
  EXPECT_EQ(back.wide, 0x0d0c0b0a09080706u);
}

TEST(Field, LayoutsStartAsZeroes) { EXPECT_EQ(wire(Odd{}), hex("00*13")); }

TEST(Field, BitsAreCountedFromTheLowEnd) {
  static_assert(bits<7, 0>(0x12345678u) == 0x78);
  static_assert(bits<31, 24>(0x12345678u) == 0x12);
  static_assert(bits<31, 0>(0x12345678u) == 0x12345678);
  static_assert(bits<15, 12>(uint16_t{0xabcd}) == 0xa);
  static_assert(bits<7, 6>(uint8_t{0x40}) == 1);
  static_assert(bits<63, 60>(uint64_t{0xf} << 60) == 0xf);
  static_assert(bit<3>(8u) && !bit<2>(8u));
  static_assert(to_bits32<23, 20>(0xf5) == 0x500000, "what does not fit is cut off");
  static_assert(to_bits<44, 37, uint64_t>(0x41) == uint64_t{0x41} << 37);
}

TEST(Field, TextIsPaddedWithSpacesAndCutToItsWidth) {
  Ascii<8> text;
  EXPECT_EQ(wire(text), hex("00*8"));
  EXPECT_EQ(text.trimmed(), "");
  text.set_padded("1.0");
  EXPECT_EQ(wire(text), hex("312e30 20*5"));
  EXPECT_EQ(text.trimmed(), "1.0");
  text.set_padded("");
  EXPECT_EQ(wire(text), hex("20*8"));
  EXPECT_EQ(text.trimmed(), "");
  text.set_padded("exactly8");
  EXPECT_EQ(text.trimmed(), "exactly8");
  text.set_padded("a b longer");
  EXPECT_EQ(text.trimmed(), "a b long");
}

TEST(Field, TextFilledWithZeroesReadsTheSame) {
  EXPECT_EQ(load<Ascii<8>>(hex("343432 30 00*4")).trimmed(), "4420");
}

TEST(Nqn, ProperNamesAreTakenAndOthersNot) {
  for (const char* name :
       {"nqn.2026-11.io.cairn:box", "nqn.2014-08.org.nvmexpress.discovery",
        "nqn.2014-08.org.nvmexpress:uuid:36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2"}) {
    EXPECT_TRUE(is_nqn(name)) << name;
  }
  EXPECT_TRUE(is_nqn("nqn.2026-11." + std::string(kNqnMax - 12, 'x')));
  for (const char* name :
       {"", "nqn.", "nqn.2026-11", "nqn.2026-11.", "nqn.2026-1.io", "Nqn.2026-11.io",
        "iqn.2026-11.io", "nqn.2026-11.a b", "nqn.2026-11.a\n"}) {
    EXPECT_FALSE(is_nqn(name)) << name;
  }
  EXPECT_FALSE(is_nqn("nqn.2026-11." + std::string(kNqnMax - 11, 'x')));
}

TEST(Nqn, FieldsEndWithZeroesAndForgetLongerNames) {
  NqnField field;
  EXPECT_FALSE(field.get());
  field.set("nqn.2026-11.io.cairn:a-long-name");
  field.set("nqn.2026-11.io.cairn:b");
  EXPECT_EQ(field.get(), "nqn.2026-11.io.cairn:b");
  EXPECT_EQ(wire(bytes_of(field).subspan(22)), hex("00*234"));
  field.set(std::string(kNqnMax, 'x'));
  EXPECT_EQ(field.get()->size(), kNqnMax);
}

TEST(Nqn, NamesOfOthersNeedOnlyEnd) {
  EXPECT_EQ(load<NqnField>(hex("6162 00*254")).get(), "ab");
  EXPECT_EQ(load<NqnField>(hex("61*223 00*33")).get()->size(), 223u);
  EXPECT_EQ(load<NqnField>(hex("61*224 00*32")).get().error(), Errc::kInvalid);
  EXPECT_EQ(load<NqnField>(hex("61*256")).get().error(), Errc::kInvalid);
}

}  // namespace
}  // namespace cairn::nvme
