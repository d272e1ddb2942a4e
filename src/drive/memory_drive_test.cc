// SPDX-License-Identifier: Apache-2.0
#include "drive/memory_drive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "task/task.h"
#include "testing/test_env.h"

namespace cairn::drive {
namespace {

using Block = std::vector<std::byte>;

Block filled(size_t size, int value) { return Block(size, static_cast<std::byte>(value)); }

// A medium of `size`, as two cores use it: each with a drive of its own.
class MemoryDrives : public testing::Test {
 protected:
  void make(uint64_t size) {
    medium_ = std::move(*MemoryMedium::make(cores_[0], size, 4096));
    here_ = std::make_unique<MemoryDrive>(cores_[0], *medium_);
    there_ = std::make_unique<MemoryDrive>(cores_[1], *medium_);
  }
  void resize(uint64_t size) {
    for (MemoryDrive* drive : {here_.get(), there_.get()}) {
      EXPECT_TRUE(drive->resize(size / 4096).take());
      EXPECT_EQ(drive->geometry().blocks, size / 4096);
    }
  }
  static task::Task<Result<void>> write_all(Drive& drive, uint64_t lba, const Block& block) {
    Result<void> done = co_await drive.write(Lba(lba), block);
    co_return done;
  }
  static task::Task<Result<void>> read_all(Drive& drive, uint64_t lba, Block& block) {
    Result<void> done = co_await drive.read(Lba(lba), block);
    co_return done;
  }
  static task::Task<Result<void>> compare_all(Drive& drive, uint64_t lba, const Block& block) {
    Result<void> done = co_await drive.compare(Lba(lba), block);
    co_return done;
  }
  static task::Task<Result<void>> clear_all(Drive& drive, uint64_t lba, uint64_t blocks) {
    Result<void> done = co_await drive.discard(Lba(lba), blocks);
    co_return done;
  }
  Block read(Drive& drive, uint64_t lba, size_t size) {
    Block block = filled(size, 0xee);
    EXPECT_TRUE(read_all(drive, lba, block).take());
    return block;
  }

  env::TestCores cores_{2};
  task::ReadyQueue::Scope scope_{cores_[0].ready()};
  std::unique_ptr<MemoryMedium> medium_;
  std::unique_ptr<MemoryDrive> here_;
  std::unique_ptr<MemoryDrive> there_;
};

TEST_F(MemoryDrives, GrowingKeepsWhatIsThereAndAddsZeroes) {
  make(64_KiB);
  EXPECT_TRUE(write_all(*here_, 15, filled(4096, 1)).take());
  resize(256_KiB);
  EXPECT_EQ(read(*there_, 15, 4096), filled(4096, 1));
  EXPECT_EQ(read(*there_, 16, 4096), filled(4096, 0));
}

TEST_F(MemoryDrives, RequestsCrossTheSeamOfAGrowth) {
  make(64_KiB);
  resize(128_KiB);
  EXPECT_TRUE(write_all(*here_, 14, filled(16_KiB, 7)).take());
  EXPECT_EQ(read(*there_, 14, 16_KiB), filled(16_KiB, 7));
  EXPECT_TRUE(compare_all(*there_, 14, filled(16_KiB, 7)).take());
  EXPECT_TRUE(clear_all(*there_, 15, 2).take());
  EXPECT_EQ(read(*here_, 15, 8192), filled(8192, 0));
  EXPECT_EQ(read(*here_, 17, 4096), filled(4096, 7));
  EXPECT_EQ(compare_all(*here_, 14, filled(16_KiB, 7)).take().error(), Errc::kMismatch);
}

TEST_F(MemoryDrives, WhatAShrinkCutOffDoesNotComeBack) {
  make(64_KiB);
  EXPECT_TRUE(write_all(*here_, 8, filled(4096, 1)).take());
  EXPECT_TRUE(here_->resize(4).take());
  EXPECT_TRUE(write_all(*there_, 9, filled(4096, 2)).take()) << "it has not heard of it yet";
  resize(16_KiB);
  Block block(4096);
  EXPECT_EQ(read_all(*there_, 8, block).take().error(), Errc::kInvalid);
  resize(64_KiB);
  EXPECT_EQ(read(*here_, 8, 8192), filled(8192, 0));
}

TEST_F(MemoryDrives, NoSizeIsRefused) {
  make(64_KiB);
  EXPECT_EQ(here_->resize(0).take().error(), Errc::kInvalid);
  EXPECT_EQ(here_->resize(UINT64_MAX).take().error(), Errc::kInvalid);
}

TEST_F(MemoryDrives, WritesAndReadsThatNeedNoWaitingAreDoneAtOnce) {
  make(1_MiB);
  Block data = filled(8192, 7);
  const MutableBytes piece(data);
  const Request write{.kind = Request::Kind::kWrite, .lba = Lba(3), .blocks = 2};
  auto done = here_->try_now(write, std::span(&piece, 1));
  ASSERT_TRUE(done && *done);
  EXPECT_EQ(read(*there_, 3, 8192), data);

  Block back = filled(8192, 0);
  const MutableBytes room(back);
  done = here_->try_now({.lba = Lba(3), .blocks = 2}, std::span(&room, 1));
  ASSERT_TRUE(done && *done);
  EXPECT_EQ(back, data);

  done = here_->try_now({.lba = Lba(255), .blocks = 2}, std::span(&room, 1));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->error(), Errc::kInvalid) << "past the end";
  EXPECT_FALSE(here_->try_now({.kind = Request::Kind::kFlush}, {})) << "no data: submit() it";
}

TEST_F(MemoryDrives, BlocksAreLentWhereTheyLieToTheOnlyCore) {
  env::TestCores one(1);
  const std::unique_ptr<MemoryMedium> medium = std::move(*MemoryMedium::make(one[0], 1_MiB, 4096));
  MemoryDrive drive(one[0], *medium);
  const Block data = filled(4096, 9);
  EXPECT_TRUE(write_all(drive, 5, data).take());
  const Bytes lent = drive.lend(Lba(5), 1);
  ASSERT_EQ(lent.size(), 4096u);
  EXPECT_TRUE(std::ranges::equal(lent, data));
  EXPECT_TRUE(write_all(drive, 5, filled(4096, 10)).take());
  EXPECT_EQ(lent[0], std::byte{10}) << "whoever borrows sees later writes";
  EXPECT_TRUE(drive.lend(Lba(255), 2).empty()) << "past the end";
  EXPECT_TRUE(drive.lend(Lba(UINT64_MAX), 1).empty());

  EXPECT_TRUE(drive.resize(512).take());
  EXPECT_TRUE(drive.lend(Lba(255), 2).empty()) << "in two regions";
  EXPECT_EQ(drive.lend(Lba(256), 2).size(), 8192u);
}

TEST_F(MemoryDrives, BlocksThatOtherCoresMayWriteAreNotLent) {
  make(1_MiB);
  EXPECT_TRUE(here_->lend(Lba(5), 1).empty());
}

}  // namespace
}  // namespace cairn::drive
