// SPDX-License-Identifier: Apache-2.0
#include "drive/size_text.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "drive/source.h"

namespace cairn::drive {
namespace {

TEST(SizeText, IsShortAndExact) {
  EXPECT_EQ(size_text(64_MiB), "64M");
  EXPECT_EQ(size_text(1536_KiB), "1536K");
  EXPECT_EQ(size_text(2048_TiB), "2048T");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(64_MiB + 512), "67109376");
  EXPECT_EQ(size_text(0), "0");
}

TEST(SizeText, IsReadAsTheSameSize) {
  for (const uint64_t bytes : {uint64_t{1}, 4096UL, 5000UL, 3 * 1_GiB, 1_TiB, UINT64_MAX}) {
    uint64_t read = 0;
    EXPECT_TRUE(parse_size(size_text(bytes), read));
    EXPECT_EQ(read, bytes);
  }
}

TEST(SizeText, OfAStackIsThatOfEachMedium) {
  EXPECT_EQ(with_size_texts("mirror(mem:size=67108864,block=4096, file:/a,size=8388608, rate=1M)"),
            "mirror(mem:size=64M,block=4096, file:/a,size=8M, rate=1M)");
  EXPECT_EQ(with_size_texts("trace(mem:size=1048576)"), "trace(mem:size=1M)");
  EXPECT_EQ(with_size_texts("flash:profile=a,size=4194304"), "flash:profile=a,size=4M");
}

TEST(SizeText, LeavesAloneWhatIsNoSize) {
  for (const char* text :
       {"file:size=1048576,block=4096", "file:/x/size=1048576", "mem:size=64M",
        "mem:size=", "mem:size=1048576x", "slice(mem:size=1M, first=1048576)", ""}) {
    EXPECT_EQ(with_size_texts(text), text);
  }
}

}  // namespace
}  // namespace cairn::drive
