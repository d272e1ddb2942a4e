// SPDX-License-Identifier: Apache-2.0
#include "door/common/guest_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "env/sharing.h"
#include "task/task.h"
#include "testing/test_core.h"

namespace cairn::door {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();

// Memory without pages: GuestMemory never looks at contents. `gone` is set by the end of it.
class NoMemory final : public env::SharedMemory {
 public:
  explicit NoMemory(uint64_t size, bool* gone = nullptr) : gone_(gone) {
    bytes_ = MutableBytes(reinterpret_cast<std::byte*>(uintptr_t{1} << 32), size);
  }
  ~NoMemory() override {
    if (gone_ != nullptr) *gone_ = true;
  }

 private:
  bool* gone_;
};

class GuestMemoryTest : public testing::Test {
 protected:
  ~GuestMemoryTest() override {
    task::Task<void> cleared = memory_.clear();
    core_.run();
    EXPECT_TRUE(cleared.is_done());
  }

  Errc add(uint64_t address, uint64_t size, bool writable = true) {
    return code(memory_.add(address, std::make_unique<NoMemory>(size), writable));
  }
  // Of a removal that nobody's use delays.
  Errc remove(uint64_t address, uint64_t size) {
    task::Task<Result<void>> removed = memory_.remove(address, size);
    core_.run();
    EXPECT_TRUE(removed.is_done());
    return code(removed.is_done() ? removed.take() : Result<void>{});
  }
  static Errc code(const Result<void>& result) { return result ? Errc{} : result.error().code(); }
  uint64_t found(uint64_t address, uint64_t length, bool for_writing = true) {
    const GuestMemory::Piece piece = memory_.find(address, length, for_writing);
    return piece.is_valid() ? piece.bytes.size() : kLast;
  }

  task::TestCore core_;
  GuestMemory memory_;
};

TEST_F(GuestMemoryTest, AddressesLeadToTheBytesOfTheirRegion) {
  EXPECT_EQ(add(0x1000, 4 * kPage), Errc{});
  EXPECT_EQ(add(0x10'0000, kPage), Errc{});
  const GuestMemory::Piece piece = memory_.find(0x2010, 100);
  ASSERT_TRUE(piece.is_valid());
  EXPECT_EQ(piece.region, memory_.regions()[0].get());
  EXPECT_EQ(piece.bytes.data(), memory_.regions()[0]->memory().bytes().data() + 0x1010);
  EXPECT_EQ(piece.bytes.size(), 100u);
  EXPECT_EQ(memory_.find(0x10'0000, kPage).region, memory_.regions()[1].get());
  EXPECT_EQ(memory_.find(0x1000, 1).region, memory_.regions()[0].get());
}

TEST_F(GuestMemoryTest, AddressesOutsideLeadNowhere) {
  EXPECT_EQ(found(0, 1), kLast);
  EXPECT_EQ(add(0x1000, kPage), Errc{});
  EXPECT_EQ(found(0xfff, 1), kLast);
  EXPECT_EQ(found(0x2000, 1), kLast);
  EXPECT_EQ(found(0x2000, 0), kLast);
  EXPECT_EQ(found(0, kLast), kLast);
  EXPECT_EQ(found(kLast, 1), kLast);
  EXPECT_EQ(found(kLast, kLast), kLast);
}

TEST_F(GuestMemoryTest, LengthsEndWithTheRegion) {
  EXPECT_EQ(add(0x1000, kPage), Errc{});
  EXPECT_EQ(found(0x1000, kPage), kPage);
  EXPECT_EQ(found(0x1fff, 1), 1u);
  EXPECT_EQ(found(0x1fff, 0), 0u);
  EXPECT_EQ(found(0x1fff, 2), kLast);
  EXPECT_EQ(found(0x1001, kPage), kLast);
  EXPECT_EQ(found(0x1800, kLast - 0x17ff), kLast);  // would wrap to 0
  EXPECT_EQ(found(0x1800, kLast), kLast);
  EXPECT_EQ(memory_.find_front(0x1ff0, kLast).bytes.size(), 16u);
  EXPECT_EQ(memory_.find_front(0x1ff0, 5).bytes.size(), 5u);
  EXPECT_FALSE(memory_.find_front(0x2000, 5).is_valid());
}

TEST_F(GuestMemoryTest, NeighboursAreNotOnePiece) {
  EXPECT_EQ(add(0x1000, kPage), Errc{});
  EXPECT_EQ(add(0x2000, kPage), Errc{});
  EXPECT_EQ(found(0x1ff0, 32), kLast);
  EXPECT_EQ(memory_.find_front(0x1ff0, 32).bytes.size(), 16u);
  EXPECT_EQ(memory_.find_front(0x2000, 16).region, memory_.regions()[1].get());
}

TEST_F(GuestMemoryTest, TheLastAddressIsAnAddress) {
  EXPECT_EQ(add(kLast - (kPage - 1), kPage), Errc{});
  EXPECT_EQ(found(kLast, 1), 1u);
  EXPECT_EQ(found(kLast, 2), kLast);
  EXPECT_EQ(found(kLast - 15, 16), 16u);
  EXPECT_EQ(memory_.find_front(kLast - 15, kLast).bytes.size(), 16u);
  EXPECT_EQ(add(kLast, 1), Errc::kExists);
  EXPECT_EQ(remove(kLast - (kPage - 1), kPage), Errc{});
}

TEST_F(GuestMemoryTest, RegionsThatCannotBeAreRefused) {
  EXPECT_EQ(add(0x1000, 0), Errc::kInvalid);
  EXPECT_EQ(add(kLast, 2), Errc::kInvalid);
  EXPECT_EQ(add(0x1000, kLast), Errc::kInvalid);
  EXPECT_TRUE(memory_.regions().empty());
  EXPECT_EQ(memory_.generation(), 0u);
}

TEST_F(GuestMemoryTest, OverlapsAreRefused) {
  EXPECT_EQ(add(0x4000, 2 * kPage), Errc{});
  EXPECT_EQ(add(0x4000, 2 * kPage), Errc::kExists);
  EXPECT_EQ(add(0x3000, kPage + 1), Errc::kExists);
  EXPECT_EQ(add(0x5fff, kPage), Errc::kExists);
  EXPECT_EQ(add(0x4800, 16), Errc::kExists);
  EXPECT_EQ(add(0, 1ull << 40), Errc::kExists);
  EXPECT_EQ(add(0x3000, kPage), Errc{});
  EXPECT_EQ(add(0x6000, kPage), Errc{});
  EXPECT_EQ(memory_.regions().size(), 3u);
}

TEST_F(GuestMemoryTest, TheNumberOfRegionsIsLimited) {
  for (uint64_t i = 0; i < GuestMemory::kRegionsMax; ++i) {
    ASSERT_EQ(add((GuestMemory::kRegionsMax - i) * 2 * kPage, kPage), Errc{});
  }
  EXPECT_EQ(add(1ull << 40, kPage), Errc::kLimit);
  EXPECT_EQ(remove(2 * kPage, kPage), Errc{});
  EXPECT_EQ(add(1ull << 40, kPage), Errc{});
}

TEST_F(GuestMemoryTest, WhatIsOnlyReadIsNotFoundForWriting) {
  EXPECT_EQ(add(0x1000, kPage, false), Errc{});
  EXPECT_EQ(found(0x1000, 8), kLast);
  EXPECT_FALSE(memory_.find_front(0x1000, 8).is_valid());
  EXPECT_EQ(found(0x1000, 8, false), 8u);
}

TEST_F(GuestMemoryTest, ARangeTakesTheRegionsThatLieInIt) {
  for (const uint64_t address : {0x1000, 0x2000, 0x4000, 0x8000}) add(address, kPage);
  EXPECT_EQ(remove(0x2000, 0x3000), Errc{});
  EXPECT_EQ(memory_.regions().size(), 2u);
  EXPECT_EQ(found(0x2000, 1), kLast);
  EXPECT_EQ(found(0x4000, 1), kLast);
  EXPECT_EQ(found(0x1000, 1), 1u);
  EXPECT_EQ(remove(0, kLast), Errc{});
  EXPECT_TRUE(memory_.regions().empty());
}

TEST_F(GuestMemoryTest, ARangeThatCutsARegionTakesNothing) {
  for (const uint64_t address : {0x1000, 0x2000, 0x4000}) add(address, kPage);
  const uint64_t generation = memory_.generation();
  EXPECT_EQ(remove(0x1001, kPage), Errc::kInvalid);
  EXPECT_EQ(remove(0x1800, 0x800), Errc::kInvalid);
  EXPECT_EQ(remove(0x1000, kPage + 1), Errc::kInvalid);
  EXPECT_EQ(remove(0x1000, 0x3001), Errc::kInvalid);
  EXPECT_EQ(remove(0x1000, kPage - 1), Errc::kInvalid);
  EXPECT_EQ(remove(0x1000, kLast), Errc::kInvalid);
  EXPECT_EQ(remove(0x8000, kPage), Errc::kNotFound);
  EXPECT_EQ(remove(0x3000, kPage), Errc::kNotFound);
  EXPECT_EQ(remove(0x1000, 0), Errc::kNotFound);
  EXPECT_EQ(memory_.regions().size(), 3u);
  EXPECT_EQ(memory_.generation(), generation);
}

TEST_F(GuestMemoryTest, EveryChangeIsAGeneration) {
  add(0x1000, kPage);
  const uint64_t first = memory_.generation();
  add(0x2000, kPage);
  EXPECT_NE(memory_.generation(), first);
  const uint64_t second = memory_.generation();
  remove(0x2000, kPage);
  EXPECT_NE(memory_.generation(), second);
  const uint64_t third = memory_.generation();
  memory_.set_write_log(nullptr);
  EXPECT_NE(memory_.generation(), third) << "pointers for writing go past a log";
}

TEST_F(GuestMemoryTest, ARemovedRegionStaysForThoseWhoUseIt) {
  bool gone = false;
  EXPECT_TRUE(memory_.add(0x1000, std::make_unique<NoMemory>(kPage, &gone)).has_value());
  GuestRegion& region = *memory_.find(0x1000, 1).region;
  EXPECT_TRUE(region.users().enter().has_value());

  task::Task<Result<void>> removed = memory_.remove(0x1000, kPage);
  core_.run();
  EXPECT_FALSE(removed.is_done());
  EXPECT_FALSE(gone);
  EXPECT_EQ(found(0x1000, 1), kLast) << "nobody finds it any more";
  EXPECT_FALSE(region.users().enter().has_value());
  // The address is free for another at once.
  EXPECT_EQ(add(0x1000, kPage), Errc{});

  region.users().leave();
  core_.run();
  ASSERT_TRUE(removed.is_done());
  EXPECT_TRUE(removed.take().has_value());
  EXPECT_TRUE(gone);
  EXPECT_EQ(found(0x1000, 1), 1u);
}

TEST_F(GuestMemoryTest, ClearWaitsForAllUsers) {
  std::vector<GuestRegion*> regions;
  for (const uint64_t address : {0x1000, 0x2000, 0x4000}) {
    add(address, kPage);
    regions.push_back(memory_.find(address, 1).region);
    EXPECT_TRUE(regions.back()->users().enter().has_value());
  }
  task::Task<void> cleared = memory_.clear();
  EXPECT_TRUE(memory_.regions().empty());
  for (GuestRegion* region : regions) {
    core_.run();
    EXPECT_FALSE(cleared.is_done());
    region->users().leave();
  }
  core_.run();
  EXPECT_TRUE(cleared.is_done());
}

}  // namespace
}  // namespace cairn::door
