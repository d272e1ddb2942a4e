// SPDX-License-Identifier: Apache-2.0
// slice, concat and stripe: where blocks lie, and what does not open. Random requests, crashes and
// compositions are in tests/stack.
#include "service/layout/layout.h"

#include <gtest/gtest.h>

#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr size_t kBlock = 4096;

// Writes its number into each block of a stack.
task::Task<void> number_blocks(env::Env& env, std::string text) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  for (uint64_t i = 0; i < drive->geometry().blocks; ++i) {
    const std::vector<std::byte> block = blocks_of(static_cast<uint8_t>(i + 1), 1);
    const Result<void> done = co_await drive->write(Lba(i), block);
    EXPECT_TRUE(done);
  }
  co_await drive->close();
}

// The numbers found on a simulated disk.
std::vector<int> numbers(sim::Cluster& cluster, const std::string& path) {
  sim::Medium& disk = cluster.node("host").disk(path);
  std::vector<int> found;
  for (uint64_t at = 0; at < disk.size(); at += kBlock) {
    std::vector<std::byte> block(kBlock);
    disk.peek(at, block);
    found.push_back(std::to_integer<int>(block[0]));
  }
  return found;
}

TEST(Slice, LiesAtItsOffset) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) {
    return number_blocks(env, "slice(file:a,size=24K, offset=8K, length=12K)");
  });
  EXPECT_EQ(numbers(cluster, "a"), (std::vector{0, 0, 1, 2, 3, 0}));
}

TEST(Concat, FollowsItsDrives) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) {
    return number_blocks(env, "concat(file:a,size=12K, file:b,size=8K)");
  });
  EXPECT_EQ(numbers(cluster, "a"), (std::vector{1, 2, 3}));
  EXPECT_EQ(numbers(cluster, "b"), (std::vector{4, 5}));
}

TEST(Stripe, TakesTurnsByChunkAndLeavesTheRestUnused) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) {
    return number_blocks(env, "stripe(file:a,size=20K, file:b,size=16K, chunk=8K)");
  });
  EXPECT_EQ(numbers(cluster, "a"), (std::vector{1, 2, 5, 6, 0}));
  EXPECT_EQ(numbers(cluster, "b"), (std::vector{3, 4, 7, 8}));
}

SIM_TEST(Stripe, MovesMoreChunksThanAFewPieces) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "stripe(mem:size=1M, mem:size=1M, mem:size=1M, chunk=4K)", leaves);
  std::vector<std::byte> wrote(256 * kBlock);
  Rng(1).fill(wrote);
  const Result<void> written = co_await drive->write(Lba(7), wrote);
  EXPECT_TRUE(written);
  std::vector<std::byte> read(wrote.size());
  const Result<void> got = co_await drive->read(Lba(7), read);
  EXPECT_TRUE(got);
  EXPECT_EQ(read, wrote);
  const Result<void> discarded = co_await drive->discard(Lba(0), drive->geometry().blocks);
  EXPECT_TRUE(discarded);
  const std::vector<std::byte> zeroes(wrote.size());
  const Result<void> same = co_await drive->compare(Lba(7), zeroes);
  EXPECT_TRUE(same);
  co_await drive->close();
}

SIM_TEST(Concat, ComparesOnAllDrivesBeforeItWrites) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "concat(mem:size=8K, mem:size=8K)", leaves);
  std::vector<std::byte> zeroes = blocks_of(0, 2);
  std::vector<std::byte> ones = blocks_of(1, 2);
  std::vector<std::byte> mixed = blocks_of(0, 2);
  mixed.back() = std::byte{9};
  const Request request{.kind = Request::Kind::kCompareAndWrite, .lba = Lba(1), .blocks = 2};
  const MutableBytes with(mixed);
  const MutableBytes to(ones);
  const MutableBytes right(zeroes);
  const Result<void> refused = co_await drive->submit(request, {&with, 1}, {&to, 1});
  EXPECT_TRUE(!refused && refused.error() == Errc::kMismatch);
  const Result<void> untouched = co_await drive->compare(Lba(1), zeroes);
  EXPECT_TRUE(untouched) << "a mismatch on the second drive leaves the first alone";
  const Result<void> done = co_await drive->submit(request, {&right, 1}, {&to, 1});
  EXPECT_TRUE(done);
  const Result<void> written = co_await drive->compare(Lba(1), ones);
  EXPECT_TRUE(written);
  co_await drive->close();
}

SIM_TEST(Stack, ThatDoesNotFitNamesTheLayer) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"slice(mem:size=8K, offset=8K)", "slice cannot be opened: the slice is past the end"},
      {"slice(mem:size=8K, length=12K)", "past the end"},
      {"slice(mem:size=8K, offset=100)", "multiples of the block size"},
      {"concat(mem:size=8K, mem:size=8K,block=512)", "different block sizes"},
      {"stripe(mem:size=8K, mem:size=8K, chunk=6K)", "a multiple of the block size"},
      {"stripe(mem:size=8K, mem:size=8K, chunk=64K)", "smaller than a chunk"},
      {"limit(mem:size=8K)", "it limits nothing"},
      {"concat(mem:size=8K, file:gone)", "file:gone: "},
      {"concat(mem:size=8K, mem:size=1)", "not a multiple of the block size"},
  };
  for (const Case& one : cases) {
    SourceLeaves leaves;
    const std::string why = co_await why_not(env, one.text, leaves);
    EXPECT_NE(why.find(one.message), std::string::npos) << one.text << ": " << why;
  }
}

SIM_TEST(Stripe, HasTheGeometryOfItsDrives) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "stripe(file:a,size=2M, mem:size=1M, chunk=16K)", leaves);
  const Geometry& shape = drive->geometry();
  EXPECT_EQ(shape.bytes(), 2_MiB);
  EXPECT_EQ(shape.block_size, 4096U);
  EXPECT_EQ(shape.optimal_blocks, 4U);
  EXPECT_TRUE(shape.volatile_cache);
  const Result<void> resized = co_await drive->resize(1);
  EXPECT_TRUE(!resized && resized.error() == Errc::kUnsupported);
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
