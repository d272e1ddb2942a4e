// SPDX-License-Identifier: Apache-2.0
#include "drive/modelled_drive.h"

#include <gtest/gtest.h>

#include "drive/memory_drive.h"
#include "task/cancel.h"
#include "testing/drive/modelled.h"
#include "testing/test_env.h"

namespace cairn::drive {
namespace {

using Block = std::vector<std::byte>;

class ModelledDrives : public testing::Test {
 protected:
  ModelledDrives() {
    memory_ = std::move(*MemoryMedium::make(cores_[0], 4_MiB, 4096));
    medium_ = std::move(*ModelledMedium::make(cores_[0], small_ssd()));
    drive_ = std::move(*ModelledDrive::make(
        cores_[0], std::make_unique<MemoryDrive>(cores_[0], *memory_), *medium_));
  }
  ~ModelledDrives() override {
    task::Task<void> closing = close();
    wait();
  }

  task::Task<void> close() {
    co_await drive_->close();
    done_ = true;
  }
  task::Task<void> write(uint64_t lba, const Block& block) {
    result_ = co_await drive_->write(Lba(lba), block, source_.token());
    done_ = true;
  }
  task::Task<void> read(uint64_t lba, Block& block) {
    result_ = co_await drive_->read(Lba(lba), block);
    done_ = true;
  }
  // Lets time pass until the request is done; how long that took.
  Duration wait() {
    const Time start = cores_[0].now();
    for (int i = 0; i < 100'000 && !done_; ++i) {
      cores_.advance(1_us);
      cores_.run();
    }
    EXPECT_TRUE(done_);
    done_ = false;
    return cores_[0].now() - start;
  }

  env::TestCores cores_{1};
  task::ReadyQueue::Scope scope_{cores_[0].ready()};
  std::unique_ptr<MemoryMedium> memory_;
  std::unique_ptr<ModelledMedium> medium_;
  std::unique_ptr<ModelledDrive> drive_;
  task::CancelSource source_;
  Result<void> result_;
  bool done_ = false;
};

TEST_F(ModelledDrives, DataComesBackWhenTheModelSays) {
  const Block written(4096, std::byte{7});
  task::Task<void> writing = write(3, written);
  const Duration program = wait();
  EXPECT_TRUE(result_);
  // A program of 750 us, and what the way there takes.
  EXPECT_GT(program, 750_us);
  EXPECT_LT(program, 1_ms);

  Block back(4096);
  task::Task<void> reading = read(3, back);
  const Duration cell = wait();
  EXPECT_TRUE(result_);
  EXPECT_EQ(back, written);
  EXPECT_GT(cell, 75_us);
  EXPECT_LT(cell, 300_us);
  EXPECT_EQ(medium_->model().counters().requests_completed, 2u);
  EXPECT_LT(medium_->lateness().max(), 10'000u);
}

TEST_F(ModelledDrives, CancelledRequestEndsAtOnceAndChangesNothing) {
  const Block block(4096, std::byte{9});
  task::Task<void> writing = write(5, block);
  source_.request();
  cores_.run();
  EXPECT_TRUE(done_);
  EXPECT_FALSE(result_);
  done_ = false;
  Block back(4096, std::byte{1});
  task::Task<void> reading = read(5, back);
  wait();
  EXPECT_EQ(back, Block(4096));
}

TEST_F(ModelledDrives, ModelSmallerThanTheDriveIsRefused) {
  auto memory = std::move(*MemoryMedium::make(cores_[0], 64_MiB, 4096));
  const auto made =
      ModelledDrive::make(cores_[0], std::make_unique<MemoryDrive>(cores_[0], *memory), *medium_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error(), Errc::kInvalid);
}

TEST_F(ModelledDrives, ModelThatLosesRequestsIsRefused) {
  flash::Parameters lossy = small_ssd();
  lossy.mqsim = true;
  EXPECT_EQ(ModelledMedium::make(cores_[0], lossy).error(), Errc::kInvalid);
}

}  // namespace
}  // namespace cairn::drive
