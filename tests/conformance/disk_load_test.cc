// SPDX-License-Identifier: Apache-2.0
// Many disk operations at once, against an oracle; and cancelling them.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/disk.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"
#include "task/when_all.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Disk;
using env::Env;
using task::CancelSource;
using task::CancelToken;
using task::Task;

WORLD_TEST_SUITE(DiskLoad);

constexpr size_t kInFlight = 128;
constexpr uint64_t kDiskSize = 4_MiB;

// What each block should hold: the seed of its last write, 0 for zeroes.
class Oracle {
 public:
  explicit Oracle(const Disk& disk) : block_(disk.block_size()), seeds_(disk.size() / block_) {}
  uint32_t block() const { return block_; }
  uint64_t block_count() const { return seeds_.size(); }
  uint64_t seed(uint64_t index) const { return seeds_[index]; }
  void set(uint64_t index, uint64_t seed) { seeds_[index] = seed; }
  bool agrees(uint64_t index, Bytes bytes) const {
    return seeds_[index] == 0 ? is_zero(bytes) : is_pattern(bytes, seeds_[index]);
  }

 private:
  uint32_t block_;
  std::vector<uint64_t> seeds_;
};

// One worker owns the blocks whose number is `id` modulo kInFlight, so that no two operations in
// flight touch one block and the oracle always knows the answer.
Task<void> work(Env& env, Disk& disk, Oracle& oracle, uint64_t id, int rounds) {
  const Buffer buffer = blank(env, oracle.block());
  Rng rng = env.rng().fork();
  for (int i = 0; i < rounds; ++i) {
    const uint64_t index = rng.below(oracle.block_count() / kInFlight) * kInFlight + id;
    const uint64_t offset = index * oracle.block();
    const uint64_t seed = rng.next() | 1;
    switch (rng.below(8)) {
      case 0: {
        const Result<void> cleared = co_await disk.discard(offset, oracle.block());
        EXPECT_EQ(outcome(cleared), "ok");
        oracle.set(index, 0);
        break;
      }
      case 1: {
        const Result<void> cleared = co_await disk.write_zeroes(offset, oracle.block());
        EXPECT_EQ(outcome(cleared), "ok");
        oracle.set(index, 0);
        break;
      }
      case 2:
      case 3:
      case 4: {
        fill_pattern(buffer.bytes(), seed);
        const Result<void> written = co_await disk.write(offset, buffer.bytes());
        EXPECT_EQ(outcome(written), "ok");
        oracle.set(index, seed);
        break;
      }
      default: {
        const Result<void> read = co_await disk.read(offset, buffer.bytes());
        EXPECT_EQ(outcome(read), "ok");
        EXPECT_TRUE(oracle.agrees(index, buffer.bytes())) << "block " << index;
      }
    }
  }
}

Task<void> expect_disk_agrees(Env& env, Disk& disk, const Oracle& oracle) {
  const Buffer buffer = blank(env, oracle.block());
  for (uint64_t index = 0; index < oracle.block_count(); ++index) {
    const Result<void> read = co_await disk.read(index * oracle.block(), buffer.bytes());
    EXPECT_EQ(outcome(read), "ok");
    EXPECT_TRUE(oracle.agrees(index, buffer.bytes())) << "block " << index;
  }
}

WORLD_TEST(DiskLoad, ManyOperationsInFlightAgreeWithTheOracle) {
  env::DiskOptions options = scene.disk("load", kDiskSize);
  options.block_size = 4096;
  const std::unique_ptr<Disk> disk = must(env.open_disk(options));
  Oracle oracle(*disk);
  std::vector<Task<void>> workers;
  for (uint64_t id = 0; id < kInFlight; ++id) {
    workers.push_back(work(env, *disk, oracle, id, 20));
  }
  co_await task::when_all(std::move(workers));
  co_await expect_disk_agrees(env, *disk, oracle);
}

WORLD_TEST(DiskLoad, FlushesAmongWritesComplete) {
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk("flushes", kDiskSize)));
  const Buffer buffer = patterned(env, 4096, 1);
  std::vector<Task<Result<void>>> operations;
  for (uint64_t i = 0; i < 64; ++i) {
    operations.push_back(disk_write(*disk, i * 4096, buffer.bytes()));
    if (i % 8 == 0) operations.push_back(disk_flush(*disk));
  }
  const auto results = co_await task::when_all(std::move(operations));
  for (const Result<void>& result : results) EXPECT_EQ(outcome(result), "ok");
}

// Two writes of the same blocks at once: afterwards each block holds one of them, whole.
WORLD_TEST(DiskLoad, OverlappingWritesLeaveEachBlockWhole) {
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk("overlap", kDiskSize)));
  const uint32_t block = disk->block_size();
  const size_t size = 16 * block;
  for (int i = 0; i < 20; ++i) {
    const Buffer one = patterned(env, size, 1);
    const Buffer two = patterned(env, size, 2);
    auto [first, second] = co_await task::when_all(disk_write(*disk, 0, one.bytes()),
                                                   disk_write(*disk, 0, two.bytes()));
    EXPECT_EQ(outcome(first), "ok");
    EXPECT_EQ(outcome(second), "ok");
    const Buffer read_back = blank(env, size);
    const Result<void> read = co_await disk->read(0, read_back.bytes());
    EXPECT_EQ(outcome(read), "ok");
    for (size_t at = 0; at < size; at += block) {
      const Bytes bytes = read_back.subspan(at, block);
      EXPECT_TRUE(is_pattern(bytes, 1, at) || is_pattern(bytes, 2, at)) << at;
    }
  }
}

// Starts one operation of each kind on its own stretch of the disk.
std::vector<Task<Result<void>>> one_of_each(Disk& disk, const Buffer& buffer, CancelToken token) {
  std::vector<Task<Result<void>>> operations;
  // Memory is lent to one operation: half to the read, half to the write.
  const size_t half = buffer.size() / 2;
  operations.push_back(disk_read(disk, 0, buffer.first(half), token));
  operations.push_back(disk_write(disk, buffer.size(), buffer.subspan(half, half), token));
  operations.push_back(disk_flush(disk, token));
  operations.push_back(disk_discard(disk, 2 * buffer.size(), buffer.size(), token));
  operations.push_back(disk_write_zeroes(disk, 3 * buffer.size(), buffer.size(), token));
  return operations;
}

WORLD_TEST(DiskLoad, CancelledBeforeTheStartNothingStarts) {
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk("early", kDiskSize)));
  const Buffer buffer = patterned(env, 65536, 1);
  const Result<void> written = co_await disk->write(2 * buffer.size(), buffer.bytes());
  EXPECT_EQ(outcome(written), "ok");
  CancelSource stop;
  stop.request();
  for (Task<Result<void>>& operation : one_of_each(*disk, buffer, stop.token())) {
    EXPECT_TRUE(operation.is_done());
    const Result<void> result = co_await operation;
    EXPECT_EQ(outcome(result), "cancelled");
  }
  const Buffer untouched = blank(env, buffer.size());
  const Result<void> read = co_await disk->read(2 * buffer.size(), untouched.bytes());
  EXPECT_EQ(outcome(read), "ok");
  EXPECT_TRUE(is_pattern(untouched.bytes(), 1)) << "not discarded";
}

WORLD_TEST(DiskLoad, CancelledAtAnyMomentEachCompletesOnce) {
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk("races", kDiskSize)));
  const Buffer buffer = patterned(env, 65536, 1);
  for (int i = 0; i < 60; ++i) {
    CancelSource stop;
    std::vector<Task<Result<void>>> operations = one_of_each(*disk, buffer, stop.token());
    if (i > 0) co_await hesitate(env);
    stop.request();
    stop.request();
    for (Task<Result<void>>& operation : operations) {
      const Result<void> result = co_await operation;
      EXPECT_TRUE(result || outcome(result) == "cancelled") << outcome(result);
    }
  }
  const Result<void> flushed = co_await disk->flush();
  EXPECT_EQ(outcome(flushed), "ok") << "the disk is as good as before";
}

// The memory is the caller's again when a cancelled operation has completed: nothing may write to
// it later.
WORLD_TEST(DiskLoad, CancelledReadGivesItsMemoryBack) {
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk("memory", kDiskSize)));
  {
    const Buffer buffer = patterned(env, 1_MiB, 1);
    const Result<void> written = co_await disk->write(0, buffer.bytes());
    EXPECT_EQ(outcome(written), "ok");
  }
  for (int i = 0; i < 20; ++i) {
    CancelSource stop;
    std::vector<Buffer> buffers;
    std::vector<Task<Result<void>>> reads;
    for (uint64_t j = 0; j < 8; ++j) {
      buffers.push_back(blank(env, 65536));
      reads.push_back(disk_read(*disk, j * 65536, buffers.back().bytes(), stop.token()));
    }
    stop.request();
    for (Task<Result<void>>& read : reads) {
      [[maybe_unused]] const Result<void> result = co_await read;
    }
    for (const Buffer& buffer : buffers) fill_pattern(buffer.bytes(), 7);
    // Another read behind the cancelled ones: had one of them still been going, it would be over.
    const Buffer last = blank(env, 65536);
    const Result<void> read = co_await disk->read(0, last.bytes());
    EXPECT_EQ(outcome(read), "ok");
    for (const Buffer& buffer : buffers) EXPECT_TRUE(is_pattern(buffer.bytes(), 7));
  }
}

WORLD_TEST(DiskLoad, CancelAfterCompletionChangesNothing) {
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk("late", kDiskSize)));
  const Buffer buffer = patterned(env, 65536, 1);
  CancelSource stop;
  std::vector<Task<Result<void>>> operations = one_of_each(*disk, buffer, stop.token());
  for (Task<Result<void>>& operation : operations) {
    while (!operation.is_done()) co_await turn(env);
  }
  stop.request();
  for (Task<Result<void>>& operation : operations) {
    const Result<void> result = co_await operation;
    EXPECT_EQ(outcome(result), "ok");
  }
}

}  // namespace
}  // namespace cairn::conformance
