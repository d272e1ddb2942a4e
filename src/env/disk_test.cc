// SPDX-License-Identifier: Apache-2.0
// What Disk checks for every back end before one sees the request.
#include "env/disk.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "task/task.h"
#include "testing/test_core.h"

namespace cairn::env {
namespace {

using task::Task;

// Completes whatever gets through, and remembers it.
class RecordingDisk final : public Disk {
 public:
  uint64_t size() const override { return 16 * 512; }
  uint32_t block_size() const override { return 512; }
  std::vector<DiskOp::Request> passed;

 private:
  void start_disk_op(DiskOp& op) override {
    passed.push_back(op.request());
    op.complete({});
  }
  void cancel_disk_op(DiskOp&) override {}
};

struct DiskCheck : testing::Test {
  static Errc code(Task<Result<void>> task) { return task.take().error().code(); }

  task::TestCore core;
  RecordingDisk disk;
  alignas(512) std::array<std::byte, 4 * 512> memory{};
};

Task<Result<void>> read(Disk& disk, uint64_t offset, MutableBytes into) {
  Result<void> result = co_await disk.read(offset, into);
  co_return result;
}
Task<Result<void>> write(Disk& disk, uint64_t offset, Bytes from) {
  Result<void> result = co_await disk.write(offset, from);
  co_return result;
}
Task<Result<void>> discard(Disk& disk, uint64_t offset, uint64_t length) {
  Result<void> result = co_await disk.discard(offset, length);
  co_return result;
}
Task<Result<void>> resize(Disk& disk, uint64_t size) {
  Result<void> result = co_await disk.resize(size);
  co_return result;
}

TEST_F(DiskCheck, RefusesWhatIsNotAligned) {
  const MutableBytes bytes(memory);
  EXPECT_EQ(code(read(disk, 1, bytes)), Errc::kInvalid) << "offset";
  EXPECT_EQ(code(read(disk, 0, bytes.first(511))), Errc::kInvalid) << "length";
  EXPECT_EQ(code(read(disk, 0, bytes.subspan(256, 512))), Errc::kInvalid) << "memory";
  EXPECT_EQ(code(write(disk, 513, bytes)), Errc::kInvalid);
  EXPECT_EQ(code(discard(disk, 0, 100)), Errc::kInvalid);
  EXPECT_EQ(code(resize(disk, 1000)), Errc::kInvalid);
  EXPECT_TRUE(disk.passed.empty());
}

TEST_F(DiskCheck, RefusesWhatIsPastTheEnd) {
  const MutableBytes bytes(memory);
  EXPECT_EQ(code(read(disk, 13 * 512, bytes)), Errc::kInvalid) << "the last block is outside";
  EXPECT_EQ(code(write(disk, 17 * 512, bytes)), Errc::kInvalid);
  EXPECT_EQ(code(discard(disk, UINT64_MAX - 511, 512)), Errc::kInvalid) << "offset + length wraps";
  EXPECT_TRUE(disk.passed.empty());
  EXPECT_TRUE(read(disk, 12 * 512, bytes).take().has_value()) << "up to the end";
}

TEST_F(DiskCheck, CompletesEmptyRequestsWithoutTheBackEnd) {
  EXPECT_TRUE(read(disk, 0, {}).take().has_value());
  EXPECT_TRUE(write(disk, 16 * 512, {}).take().has_value()) << "at the very end";
  EXPECT_TRUE(discard(disk, 512, 0).take().has_value());
  EXPECT_TRUE(disk.passed.empty());
}

TEST_F(DiskCheck, PassesResizePastTheEnd) {
  EXPECT_TRUE(resize(disk, 64 * 512).take().has_value());
  ASSERT_EQ(disk.passed.size(), 1u);
  EXPECT_EQ(disk.passed[0].length, 64u * 512);
}

}  // namespace
}  // namespace cairn::env
