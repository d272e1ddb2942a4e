// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn {
namespace {

BufferPoolOptions small() { return {.classes = {{4096, 2}, {8192, 1}}}; }

TEST(BufferPool, GivesAlignedBuffersOfTheSizeAsked) {
  BufferPool pool(small());
  Buffer buffer = pool.allocate(100).value();
  EXPECT_EQ(buffer.size(), 100u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % BufferPool::kAlignment, 0u);
  EXPECT_EQ(pool.in_use(), 1u);
}

TEST(BufferPool, BorrowsFromALargerClassThenSaysLimit) {
  BufferPool pool(small());
  std::vector<Buffer> held;
  for (int i = 0; i < 3; ++i) held.push_back(pool.allocate(4096).value());
  EXPECT_TRUE(pool.allocate(1).error() == Errc::kLimit);
  held.pop_back();
  EXPECT_TRUE(pool.allocate(8192).has_value());
}

TEST(BufferPool, TakesFromTheHeapWhatTheArenaHasNot) {
  BufferPool pool(small());
  Buffer first = pool.allocate_or_heap(4096).value();
  EXPECT_EQ(pool.in_use(), 1u);
  EXPECT_EQ(pool.heap_in_use(), 0u);
  Buffer large = pool.allocate_or_heap(8193).value();
  EXPECT_EQ(large.size(), 8193u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data()) % BufferPool::kAlignment, 0u);
  EXPECT_EQ(pool.heap_in_use(), 3u * 4096);
  std::vector<Buffer> held;
  for (int i = 0; i < 4; ++i) held.push_back(pool.allocate_or_heap(100).value());
  EXPECT_EQ(pool.in_use(), 3u);
  EXPECT_EQ(pool.heap_in_use(), 5u * 4096);
  large = {};
  held.clear();
  EXPECT_EQ(pool.heap_in_use(), 0u);
  EXPECT_EQ(pool.in_use(), 1u);
}

TEST(BufferPool, TheHeapHasABoundToo) {
  BufferPool pool(small());
  std::vector<Buffer> held;
  for (int i = 0; i < 4; ++i) held.push_back(pool.allocate_or_heap(size_t{256} << 20).value());
  EXPECT_EQ(pool.heap_in_use(), BufferPool::kHeapMax);
  EXPECT_TRUE(pool.allocate_or_heap(8193).error() == Errc::kLimit);
  // Of the arena there is something left.
  EXPECT_TRUE(pool.allocate_or_heap(8192).has_value());
  held.pop_back();
  EXPECT_TRUE(pool.allocate_or_heap(8193).has_value());
  EXPECT_TRUE(pool.allocate_or_heap(0).error() == Errc::kInvalid);
  EXPECT_TRUE(pool.allocate_or_heap(BufferPool::kHeapMax + 1).error() == Errc::kInvalid);
}

TEST(BufferPool, RefusesZeroAndTooLarge) {
  BufferPool pool(small());
  EXPECT_TRUE(pool.allocate(0).error() == Errc::kInvalid);
  EXPECT_TRUE(pool.allocate(8193).error() == Errc::kInvalid);
}

TEST(BufferPool, ReusesWhatWasReturnedAndMovesTransferOwnership) {
  BufferPool pool(small());
  std::byte* first = nullptr;
  {
    Buffer a = pool.allocate(4096).value();
    first = a.data();
    Buffer b = std::move(a);
    EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move): moved-from is empty by contract
    EXPECT_EQ(b.data(), first);
  }
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(pool.allocate(4096).value().data(), first);
}

TEST(BufferPoolDeathTest, OutlivesItsBuffers) {
  EXPECT_DEATH(
      {
        Buffer kept;
        BufferPool pool(small());
        kept = pool.allocate(1).value();
      },
      "every buffer returns");
}

}  // namespace
}  // namespace cairn
