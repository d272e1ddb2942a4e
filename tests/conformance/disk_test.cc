// SPDX-License-Identifier: Apache-2.0
// Disks: what was written is read back, what is not aligned or past the end is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/disk.h"
#include "env/env.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Disk;
using env::DiskOptions;
using env::Env;
using task::Task;

WORLD_TEST_SUITE(Disks);

constexpr uint64_t kSize = 1_MiB;

std::unique_ptr<Disk> new_disk(Env& env, Scene& scene, uint64_t size = kSize) {
  return must(env.open_disk(scene.disk("disk", size)));
}

// Whether the range reads back as the sequence from `at` on.
Task<bool> holds(Env& env, Disk& disk, uint64_t offset, size_t size, uint64_t seed, uint64_t at) {
  const Buffer buffer = blank(env, size);
  const Result<void> read = co_await disk.read(offset, buffer.bytes());
  EXPECT_EQ(outcome(read), "ok");
  co_return is_pattern(buffer.bytes(), seed, at);
}
Task<bool> holds_zeroes(Env& env, Disk& disk, uint64_t offset, size_t size) {
  const Buffer buffer = blank(env, size);
  const Result<void> read = co_await disk.read(offset, buffer.bytes());
  EXPECT_EQ(outcome(read), "ok");
  co_return is_zero(buffer.bytes());
}
Task<void> put(Env& env, Disk& disk, uint64_t offset, size_t size, uint64_t seed) {
  const Buffer buffer = patterned(env, size, seed);
  const Result<void> written = co_await disk.write(offset, buffer.bytes());
  EXPECT_EQ(outcome(written), "ok");
}

WORLD_TEST(Disks, NewDiskHasTheSizeAskedForAndReadsAsZeroes) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  EXPECT_EQ(disk->size(), kSize);
  EXPECT_GE(disk->block_size(), 512u);
  EXPECT_LE(disk->block_size(), 4096u);
  const bool zero = co_await holds_zeroes(env, *disk, 0, kSize);
  EXPECT_TRUE(zero);
}

WORLD_TEST(Disks, ReadsBackWhatWasWritten) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  for (const uint64_t blocks : {1, 2, 3, 7, 16}) {
    const size_t size = blocks * block;
    for (const uint64_t offset : {uint64_t{0}, uint64_t{block}, kSize / 2, kSize - size}) {
      co_await put(env, *disk, offset, size, blocks);
      const bool same = co_await holds(env, *disk, offset, size, blocks, 0);
      EXPECT_TRUE(same) << blocks << " blocks at " << offset;
    }
  }
}

WORLD_TEST(Disks, WholeDiskInOneOperation) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  co_await put(env, *disk, 0, kSize, 1);
  const bool same = co_await holds(env, *disk, 0, kSize, 1, 0);
  EXPECT_TRUE(same);
}

WORLD_TEST(Disks, WriteLeavesItsNeighboursAlone) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  co_await put(env, *disk, 0, 4 * block, 1);
  co_await put(env, *disk, block, block, 2);
  const bool before = co_await holds(env, *disk, 0, block, 1, 0);
  const bool middle = co_await holds(env, *disk, block, block, 2, 0);
  const bool after = co_await holds(env, *disk, 2 * block, 2 * block, 1, 2 * block);
  EXPECT_TRUE(before);
  EXPECT_TRUE(middle);
  EXPECT_TRUE(after);
}

WORLD_TEST(Disks, MisalignedRequestsAreInvalid) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  const Buffer buffer = blank(env, 4 * block);
  const MutableBytes all = buffer.bytes();
  const Result<void> offset = co_await disk->read(1, all);
  EXPECT_EQ(outcome(offset), "invalid");
  const Result<void> length = co_await disk->read(0, all.first(block - 1));
  EXPECT_EQ(outcome(length), "invalid");
  const Result<void> memory = co_await disk->read(0, all.subspan(block / 2, block));
  EXPECT_EQ(outcome(memory), "invalid");
  const Result<void> write_offset = co_await disk->write(block / 2, all);
  EXPECT_EQ(outcome(write_offset), "invalid");
  const Result<void> write_memory = co_await disk->write(0, all.subspan(1, block));
  EXPECT_EQ(outcome(write_memory), "invalid");
  const std::array<MutableBytes, 2> halves = {all.first(block / 2), all.subspan(block, block / 2)};
  const Result<void> pieces = co_await disk->read(0, std::span(halves));
  EXPECT_EQ(outcome(pieces), "invalid") << "each piece, not only their sum";
  const Result<void> discard = co_await disk->discard(0, block + 1);
  EXPECT_EQ(outcome(discard), "invalid");
  const Result<void> zeroes = co_await disk->write_zeroes(3, block);
  EXPECT_EQ(outcome(zeroes), "invalid");
  const Result<void> resize = co_await disk->resize(kSize + 1);
  EXPECT_EQ(outcome(resize), "invalid");
}

WORLD_TEST(Disks, RequestsPastTheEndAreInvalid) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  const Buffer buffer = blank(env, 2 * block);
  const Result<void> half_out = co_await disk->read(kSize - block, buffer.bytes());
  EXPECT_EQ(outcome(half_out), "invalid");
  const Result<void> outside = co_await disk->write(kSize, buffer.bytes());
  EXPECT_EQ(outcome(outside), "invalid");
  const Result<void> far_out = co_await disk->discard(uint64_t{1} << 63, block);
  EXPECT_EQ(outcome(far_out), "invalid");
  const Result<void> nothing_at_the_end = co_await disk->read(kSize, MutableBytes{});
  EXPECT_EQ(outcome(nothing_at_the_end), "ok");
}

// A buffer cut into pieces of 1, 2, 1, 2, ... blocks.
template <class Piece>
std::vector<Piece> block_pieces(const Buffer& buffer, uint32_t block) {
  std::vector<Piece> pieces;
  size_t at = 0;
  for (size_t i = 0; at < buffer.size(); ++i) {
    const size_t size = std::min<size_t>((1 + i % 2) * block, buffer.size() - at);
    pieces.push_back(buffer.subspan(at, size));
    at += size;
  }
  return pieces;
}

WORLD_TEST(Disks, VectoredWritesAndReadsKeepTheOrderOfPieces) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  const size_t size = 16 * block;
  const Buffer from = patterned(env, size, 5);
  const auto sources = block_pieces<Bytes>(from, block);
  const Result<void> written = co_await disk->write(block, std::span(sources), {.durable = false});
  EXPECT_EQ(outcome(written), "ok");
  const Buffer into = blank(env, size);
  const auto targets = block_pieces<MutableBytes>(into, block);
  const Result<void> read = co_await disk->read(block, std::span(targets));
  EXPECT_EQ(outcome(read), "ok");
  EXPECT_TRUE(is_pattern(into.bytes(), 5));
}

// More pieces than one system call takes (IOV_MAX is 1024).
WORLD_TEST(Disks, VectoredOperationsTakeThousandsOfPieces) {
  constexpr uint64_t kBuffers = 6;
  const std::unique_ptr<Disk> disk = new_disk(env, scene, (kBuffers + 1) * 1_MiB);
  const uint32_t block = disk->block_size();
  std::vector<Buffer> buffers;
  std::vector<MutableBytes> targets;
  std::vector<Bytes> sources;
  for (uint64_t i = 0; i < kBuffers; ++i) {
    buffers.push_back(patterned(env, 1_MiB, i));
    for (size_t at = 0; at < 1_MiB; at += block) {
      targets.push_back(buffers.back().subspan(at, block));
      sources.push_back(targets.back());
    }
  }
  EXPECT_GT(sources.size(), 1024u);
  const Result<void> written = co_await disk->write(0, std::span(sources), {.durable = false});
  EXPECT_EQ(outcome(written), "ok");
  for (const Buffer& buffer : buffers) fill_pattern(buffer.bytes(), 99);
  const Result<void> read = co_await disk->read(0, std::span(targets));
  EXPECT_EQ(outcome(read), "ok");
  for (uint64_t i = 0; i < kBuffers; ++i) EXPECT_TRUE(is_pattern(buffers[i].bytes(), i)) << i;
  const bool after = co_await holds_zeroes(env, *disk, kBuffers * 1_MiB, 1_MiB);
  EXPECT_TRUE(after);
}

WORLD_TEST(Disks, HolesReadAsZeroes) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  co_await put(env, *disk, kSize - block, block, 1);
  const bool hole = co_await holds_zeroes(env, *disk, 0, kSize - block);
  EXPECT_TRUE(hole);
}

WORLD_TEST(Disks, FlushAndDurableWritesComplete) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  const Result<void> clean = co_await disk->flush();
  EXPECT_EQ(outcome(clean), "ok") << "nothing to flush";
  co_await put(env, *disk, 0, block, 1);
  const Result<void> flushed = co_await disk->flush();
  EXPECT_EQ(outcome(flushed), "ok");
  const Buffer buffer = patterned(env, block, 2);
  const Result<void> durable = co_await disk->write(block, buffer.bytes(), {.durable = true});
  EXPECT_EQ(outcome(durable), "ok");
  const Result<void> zeroes = co_await disk->write_zeroes(0, block, {.durable = true});
  EXPECT_EQ(outcome(zeroes), "ok");
  const bool zeroed = co_await holds_zeroes(env, *disk, 0, block);
  const bool same = co_await holds(env, *disk, block, block, 2, 0);
  EXPECT_TRUE(zeroed);
  EXPECT_TRUE(same);
}

WORLD_TEST(Disks, DiscardAndWriteZeroesReadAsZeroesAndTouchNothingElse) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  for (const bool discard : {true, false}) {
    co_await put(env, *disk, 0, kSize, 1);
    const uint64_t offset = 3 * block;
    const uint64_t length = 13 * block;
    Result<void> cleared;
    if (discard) {
      cleared = co_await disk->discard(offset, length);
    } else {
      cleared = co_await disk->write_zeroes(offset, length);
    }
    EXPECT_EQ(outcome(cleared), "ok") << discard;
    const bool zero = co_await holds_zeroes(env, *disk, offset, length);
    const bool before = co_await holds(env, *disk, 0, offset, 1, 0);
    const uint64_t end = offset + length;
    const bool after = co_await holds(env, *disk, end, kSize - end, 1, end);
    EXPECT_TRUE(zero) << discard;
    EXPECT_TRUE(before) << discard;
    EXPECT_TRUE(after) << discard;
    EXPECT_EQ(disk->size(), kSize);
    co_await put(env, *disk, offset, block, 2);
    const bool again = co_await holds(env, *disk, offset, block, 2, 0);
    EXPECT_TRUE(again) << "cleared blocks can be written again";
  }
}

WORLD_TEST(Disks, EverythingWrittenIsFoundAmongTheData) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  const std::set<uint64_t> written = {0, 7 * block, kSize - block};
  for (const uint64_t offset : written) co_await put(env, *disk, offset, block, 1);
  std::set<uint64_t> found;
  for (Disk::Extent data = disk->next_data(0); data.length > 0;
       data = disk->next_data(data.offset + data.length)) {
    EXPECT_LE(data.offset + data.length, kSize);
    for (const uint64_t offset : written) {
      if (offset >= data.offset && offset < data.offset + data.length) found.insert(offset);
    }
  }
  EXPECT_EQ(found, written);
}

WORLD_TEST(Disks, ResizeKeepsWhatStaysAndAddsZeroes) {
  const std::unique_ptr<Disk> disk = new_disk(env, scene);
  const uint32_t block = disk->block_size();
  co_await put(env, *disk, 0, kSize, 1);
  const Result<void> grown = co_await disk->resize(2 * kSize);
  EXPECT_EQ(outcome(grown), "ok");
  EXPECT_EQ(disk->size(), 2 * kSize);
  const bool kept = co_await holds(env, *disk, 0, kSize, 1, 0);
  const bool added = co_await holds_zeroes(env, *disk, kSize, kSize);
  EXPECT_TRUE(kept);
  EXPECT_TRUE(added);
  const Result<void> shrunk = co_await disk->resize(4 * block);
  EXPECT_EQ(outcome(shrunk), "ok");
  EXPECT_EQ(disk->size(), 4 * block);
  const Buffer buffer = blank(env, block);
  const Result<void> outside = co_await disk->read(4 * block, buffer.bytes());
  EXPECT_EQ(outcome(outside), "invalid");
  const Result<void> regrown = co_await disk->resize(kSize);
  EXPECT_EQ(outcome(regrown), "ok");
  const bool head = co_await holds(env, *disk, 0, 4 * block, 1, 0);
  const bool gone = co_await holds_zeroes(env, *disk, 4 * block, kSize - 4 * block);
  EXPECT_TRUE(head);
  EXPECT_TRUE(gone) << "what was cut off does not come back";
}

WORLD_TEST(Disks, BrokenMediumIsAnIoError) {
  const DiskOptions options = scene.disk("broken", kSize);
  const std::unique_ptr<Disk> disk = must(env.open_disk(options));
  co_await put(env, *disk, 0, kSize, 1);
  scene.break_reads(options);
  const Buffer buffer = blank(env, disk->block_size());
  for (const uint64_t offset : {uint64_t{0}, kSize - disk->block_size()}) {
    const Result<void> read = co_await disk->read(offset, buffer.bytes());
    EXPECT_EQ(outcome(read), "io") << offset;
  }
}

WORLD_TEST(Disks, MissingDiskIsNotFound) {
  DiskOptions options = scene.disk("missing", 0);
  options.create = false;
  const auto disk = env.open_disk(options);
  EXPECT_EQ(outcome(disk), "not_found");
  co_return;
}

WORLD_TEST(Disks, DiskInUseExists) {
  const DiskOptions options = scene.disk("exclusive", kSize);
  std::unique_ptr<Disk> disk = must(env.open_disk(options));
  const auto again = env.open_disk(options);
  EXPECT_EQ(outcome(again), "exists");
  disk.reset();
  const auto later = env.open_disk(options);
  EXPECT_EQ(outcome(later), "ok");
  co_return;
}

WORLD_TEST(Disks, ContentsOutliveTheObject) {
  DiskOptions options = scene.disk("kept", kSize);
  {
    const std::unique_ptr<Disk> disk = must(env.open_disk(options));
    co_await put(env, *disk, 0, kSize, 1);
  }
  options.create = false;
  options.size = 0;
  const std::unique_ptr<Disk> disk = must(env.open_disk(options));
  EXPECT_EQ(disk->size(), kSize) << "whatever it is";
  const bool same = co_await holds(env, *disk, 0, kSize, 1, 0);
  EXPECT_TRUE(same);
}

WORLD_TEST(Disks, AnotherSizeThanDemandedIsInvalid) {
  DiskOptions options = scene.disk("sized", kSize);
  must(env.open_disk(options));
  options.size = 2 * kSize;
  const auto disk = env.open_disk(options);
  EXPECT_EQ(outcome(disk), "invalid");
  co_return;
}

WORLD_TEST(Disks, StrangeBlockSizesAreInvalid) {
  DiskOptions options = scene.disk("blocks", kSize);
  for (const uint32_t block_size : {1u, 3000u, 5120u}) {
    options.block_size = block_size;
    const auto disk = env.open_disk(options);
    EXPECT_EQ(outcome(disk), "invalid") << block_size;
  }
  options.block_size = 8192;
  const std::unique_ptr<Disk> disk = must(env.open_disk(options));
  EXPECT_EQ(disk->block_size(), 8192u);
  const Buffer buffer = blank(env, 4096);
  const Result<void> read = co_await disk->read(0, buffer.bytes());
  EXPECT_EQ(outcome(read), "invalid") << "half a block";
}

WORLD_TEST(Disks, ReadOnlyDiskReadsAndRefusesToChange) {
  DiskOptions options = scene.disk("read_only", kSize);
  {
    const std::unique_ptr<Disk> disk = must(env.open_disk(options));
    co_await put(env, *disk, 0, kSize, 1);
  }
  options.read_only = true;
  const std::unique_ptr<Disk> disk = must(env.open_disk(options));
  const uint32_t block = disk->block_size();
  const Buffer buffer = patterned(env, block, 2);
  const Result<void> written = co_await disk->write(0, buffer.bytes());
  EXPECT_EQ(outcome(written), "denied");
  const Result<void> discarded = co_await disk->discard(0, block);
  EXPECT_EQ(outcome(discarded), "denied");
  const Result<void> zeroed = co_await disk->write_zeroes(0, block);
  EXPECT_EQ(outcome(zeroed), "denied");
  const Result<void> resized = co_await disk->resize(2 * kSize);
  EXPECT_EQ(outcome(resized), "denied");
  const bool same = co_await holds(env, *disk, 0, kSize, 1, 0);
  EXPECT_TRUE(same);
  const auto second = env.open_disk(options);
  EXPECT_EQ(outcome(second), "ok") << "readers may share";
}

}  // namespace
}  // namespace cairn::conformance
