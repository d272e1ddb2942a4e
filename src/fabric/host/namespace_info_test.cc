// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/namespace_info.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>

#include "base/rng.h"

namespace cairn::fabric {
namespace {

// Pages of a plain target, which a test changes.
struct Pages {
  nvme::IdentifyController controller;
  nvme::IdentifyControllerNvm limits;
  nvme::IdentifyNamespace space;
  uint32_t transfer_max = 1 << 20;
  bool can_fuse = true;

  Pages() {
    controller.nvm_commands = 0x1ff;
    controller.write_cache = 1;
    space.size = 1000;
    space.lba_formats[0].block_shift = 12;
  }
  Result<NamespaceInfo> describe() const {
    return fabric::describe(3, {.controller = controller,
                                .limits = limits,
                                .space = space,
                                .transfer_max = transfer_max,
                                .can_fuse = can_fuse});
  }
};

TEST(NamespaceInfo, CopyIsAsLongAsBothItsLimitsAllow) {
  Pages pages;
  pages.controller.copy_formats = nvme::Ocfs::kFormat0;
  pages.space.copy_range_blocks_max = 64;
  pages.space.copy_blocks_max = 48;
  EXPECT_EQ(pages.describe()->copy_blocks, 48u);
  pages.space.copy_blocks_max = 1000;
  EXPECT_EQ(pages.describe()->copy_blocks, 64u);
  pages.controller.copy_formats = 0;
  EXPECT_EQ(pages.describe()->copy_blocks, 0u);
  pages.controller.copy_formats = nvme::Ocfs::kFormat0;
  pages.controller.nvm_commands = 0;
  EXPECT_EQ(pages.describe()->copy_blocks, 0u);
}

TEST(NamespaceInfo, TakesGeometryFromThePages) {
  Pages pages;
  const auto plain = pages.describe();
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->geometry.blocks, 1000u);
  EXPECT_EQ(plain->geometry.block_size, 4096u);
  EXPECT_EQ(plain->geometry.optimal_blocks, 1u);
  EXPECT_EQ(plain->geometry.atomic_blocks, 1u);
  EXPECT_EQ(plain->geometry.transfer_blocks, 1024u);
  EXPECT_TRUE(plain->geometry.volatile_cache);
  EXPECT_EQ(plain->command_blocks, 256u);
  EXPECT_EQ(plain->compare_write_blocks, 1u);
  EXPECT_EQ(plain->zeroes_blocks, 65536u);
  EXPECT_EQ(plain->discard_blocks, UINT32_MAX);

  pages.space.features = nvme::Nsfeat::kOptimal | nvme::Nsfeat::kAtomic;
  pages.space.write_granularity = 15;
  pages.space.deallocate_granularity = 31;
  pages.space.atomic_write_power_fail = 63;
  pages.space.atomic_compare_write = 7;
  pages.controller.write_cache = 0;
  pages.limits.write_zeroes_max = 5;
  pages.limits.deallocate_range_blocks_max = 100;
  const auto rich = pages.describe();
  EXPECT_EQ(rich->geometry.optimal_blocks, 16u);
  EXPECT_EQ(rich->geometry.discard_blocks, 32u);
  EXPECT_EQ(rich->geometry.atomic_blocks, 64u);
  EXPECT_FALSE(rich->geometry.volatile_cache);
  EXPECT_EQ(rich->compare_write_blocks, 8u);
  EXPECT_EQ(rich->zeroes_blocks, 32u);
  EXPECT_EQ(rich->discard_blocks, 100u);
}

TEST(NamespaceInfo, PromisesNoMoreAtomicityThanBoundariesLeave) {
  Pages pages;
  pages.space.features = nvme::Nsfeat::kAtomic;
  pages.space.atomic_write_power_fail = 23;
  pages.space.atomic_boundary_power_fail = 15;
  EXPECT_EQ(pages.describe()->geometry.atomic_blocks, 8u);
  pages.space.atomic_boundary_offset = 1;
  EXPECT_EQ(pages.describe()->geometry.atomic_blocks, 1u);
  pages.space.atomic_boundary_power_fail = 0;
  pages.space.atomic_boundary_offset = 0;
  pages.space.atomic_write_power_fail = 0xffff;
  EXPECT_EQ(pages.describe()->geometry.atomic_blocks, 256u);
}

TEST(NamespaceInfo, RefusesWhatNoDriveCanBe) {
  Pages pages;
  pages.space.size = 0;
  EXPECT_TRUE(pages.describe().error() == Errc::kNotFound);
  pages.space.size = 1;
  for (const uint8_t shift : {0, 8, 17, 255}) {
    pages.space.lba_formats[0].block_shift = shift;
    EXPECT_TRUE(pages.describe().error() == Errc::kUnsupported);
  }
  pages.space.lba_formats[0].block_shift = 9;
  pages.space.lba_formats[0].metadata_size = 8;
  EXPECT_TRUE(pages.describe().error() == Errc::kUnsupported);
  pages.space.lba_formats[0].metadata_size = 0;
  pages.transfer_max = 256;
  EXPECT_TRUE(pages.describe().error() == Errc::kUnsupported);
}

TEST(NamespaceInfo, AnyPagesGiveASoundGeometryOrAnError) {
  Rng rng(8);
  int sound = 0;
  for (int i = 0; i < 3000; ++i) {
    auto pages = std::make_unique<Pages>();
    rng.fill(nvme::mutable_bytes_of(pages->controller));
    rng.fill(nvme::mutable_bytes_of(pages->limits));
    rng.fill(nvme::mutable_bytes_of(pages->space));
    if (rng.bernoulli(0.9)) {
      for (auto& format : pages->space.lba_formats) {
        format = {.metadata_size = 0, .block_shift = static_cast<uint8_t>(rng.between(9, 16))};
      }
      pages->space.protection = 0;
    }
    const auto info = pages->describe();
    if (!info) continue;
    ++sound;
    const drive::Geometry& shape = info->geometry;
    EXPECT_LE(shape.blocks, UINT64_MAX / shape.block_size);
    EXPECT_GT(shape.atomic_blocks, 0u);
    EXPECT_LE(shape.atomic_blocks, info->command_blocks);
    EXPECT_GT(shape.transfer_blocks, 0u);
    EXPECT_LE(info->zeroes_blocks, 65536u);
  }
  EXPECT_GT(sound, 300) << "most were refused";
}

TEST(NamespaceInfo, IsTheSameByItsBestName) {
  NamespaceInfo a{.nsid = 1};
  NamespaceInfo b{.nsid = 1};
  EXPECT_TRUE(a.is_same(b));
  b.nsid = 2;
  EXPECT_FALSE(a.is_same(b));
  a.eui64 = b.eui64 = {1};
  EXPECT_TRUE(a.is_same(b));
  a.uuid = {1};
  EXPECT_FALSE(a.is_same(b));
  b.uuid = {1};
  EXPECT_TRUE(a.is_same(b));
  a.nguid = {1};
  b.nguid = {2};
  EXPECT_FALSE(a.is_same(b));
}

}  // namespace
}  // namespace cairn::fabric
