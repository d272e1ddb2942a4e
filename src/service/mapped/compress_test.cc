// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/compress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "service/mapped/codec.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr size_t kBlock = 4096;

// Bytes that no codec makes smaller.
std::vector<std::byte> noise(env::Env& env, size_t blocks) {
  std::vector<std::byte> bytes(blocks * kBlock);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(env.rng().below(256));
  return bytes;
}

TEST(Codec, ComesBackAndIsNotFooled) {
  std::vector<std::byte> plain(32768);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i / 97);
  for (const Codec codec : {Codec::kLz4, Codec::kZstd}) {
    for (const int level : {0, 1, 5, codec_level_max(codec)}) {
      Compressor compressor(codec, level);
      std::vector<std::byte> packed(plain.size());
      const std::optional<size_t> size = compressor.compress(plain, packed);
      ASSERT_TRUE(size);
      EXPECT_LT(*size, plain.size() / 4);
      packed.resize(*size);
      std::vector<std::byte> back(plain.size());
      EXPECT_TRUE(decompress(codec, packed, back));
      EXPECT_EQ(back, plain);
      EXPECT_FALSE(decompress(codec, packed, MutableBytes(back).first(100)));
      EXPECT_FALSE(decompress(codec, Bytes(packed).first(packed.size() / 2), back));
      std::vector<std::byte> larger(plain.size() + 1);
      EXPECT_FALSE(decompress(codec, packed, larger));
      EXPECT_FALSE(compressor.compress(plain, MutableBytes(packed).first(10)));
    }
    Rng rng(5);
    std::vector<std::byte> junk(1000);
    for (int i = 0; i < 200; ++i) {
      for (std::byte& byte : junk) byte = static_cast<std::byte>(rng.below(256));
      std::vector<std::byte> back(4096);
      EXPECT_FALSE(decompress(codec, junk, back));
    }
  }
}

task::Task<void> count_space(env::Env& env, std::string options) {
  SourceLeaves leaves;
  auto drive =
      co_await must_open(env, fmt::format("compress(file:d0,size=4M, {})", options), leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await write_bytes(*drive, 0, blocks_of(7, 80));  // ten chunks
  EXPECT_EQ(fact(*drive, "blocks_written"), 80U);
  EXPECT_EQ(fact(*drive, "blocks_used"), 10U);
  EXPECT_EQ(fact(*drive, "blocks_saved"), 70U);
  const std::vector<std::byte> junk = noise(env, 16);
  co_await write_bytes(*drive, 160, junk);
  EXPECT_EQ(fact(*drive, "blocks_used"), 26U);
  EXPECT_EQ(fact(*drive, "chunks_uncompressed"), 2U);
  // A part of a chunk, and one across two.
  const std::vector<std::byte> four = blocks_of(9, 4);
  co_await write_bytes(*drive, 6, four);
  std::vector<std::byte> wanted = blocks_of(7, 80);
  std::ranges::copy(four, wanted.begin() + 6 * kBlock);
  const auto first = co_await read_bytes(*drive, 0, 80);
  EXPECT_EQ(first, wanted);
  const auto second = co_await read_bytes(*drive, 163, 7);
  EXPECT_TRUE(std::ranges::equal(second, Bytes(junk).subspan(3 * kBlock, 7 * kBlock)));
  const Extent hole = drive->extent_at(Lba(85), 200);
  EXPECT_TRUE(hole.is_hole);
  EXPECT_EQ(hole.blocks, 75U);
  // Space comes back, for parts too once nothing but zeroes is left.
  const Result<void> discarded = co_await drive->discard(Lba(0), 84);
  const Result<void> half = co_await drive->discard(Lba(160), 4);
  const Result<void> rest = co_await drive->discard(Lba(164), 100);
  EXPECT_TRUE(discarded && half && rest);
  EXPECT_EQ(fact(*drive, "blocks_used"), 0U);
  EXPECT_EQ(fact(*drive, "blocks_written"), 0U);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await drive->close();
}

TEST(Compress, TakesTheSpaceThatIsNeeded) {
  for (const char* options :
       {"codec=lz4", "codec=lz4, level=9", "codec=zstd", "codec=zstd, level=9"}) {
    run_in_sim([&](env::Env& env) { return count_space(env, options); });
  }
}

SIM_TEST(Compress, HoldsMoreThanThereIsAndSaysWhenItIsFull) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "compress(file:d0,size=2M, virtual=8M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(drive->geometry().bytes(), 8_MiB);
  for (uint64_t at = 0; at < 2048; at += 64)
    co_await write_bytes(*drive, at, blocks_of(at / 64 + 1, 64));
  EXPECT_EQ(fact(*drive, "blocks_used"), 256U);
  // Now what cannot be compressed, until it does not fit.
  const std::vector<std::byte> junk = noise(env, 8);
  Result<void> done;
  uint64_t at = 0;
  for (; done && at < 2048; at += 8) done = co_await drive->write(Lba(at), junk);
  EXPECT_EQ(done.error(), Errc::kNoSpace);
  at -= 8;
  EXPECT_GT(at, 0U);
  // What was there is, and what could not be written is as it was.
  const auto last = co_await read_bytes(*drive, at - 8, 8);
  EXPECT_EQ(last, junk);
  const auto old = co_await read_bytes(*drive, at, 8);
  EXPECT_EQ(old, blocks_of(at / 64 + 1, 8));
  const Result<void> discarded = co_await drive->discard(Lba(0), 8);
  EXPECT_TRUE(discarded);
  co_await write_bytes(*drive, at, junk);
  co_await drive->close();
}

// What surely fits does, however often it is written and by however many.
task::Task<void> overwrite(env::Env& env, Drive& drive, uint64_t first, uint64_t count,
                           int rounds) {
  for (int i = 0; i < rounds; ++i) {
    for (uint64_t at = first; at < first + count; at += 8) {
      const std::vector<std::byte> junk = noise(env, 8);
      co_await write_bytes(drive, at, junk);
    }
  }
}

SIM_TEST(Compress, DefaultSizeHoldsWhatCannotBeCompressed) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "compress(file:d0,size=2M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const uint64_t blocks = drive->geometry().blocks;
  EXPECT_GT(blocks, 350U);
  std::vector<task::Task<void>> workers;
  for (uint64_t i = 0; i < 4; ++i) {
    const uint64_t first = blocks / 8 * i / 4 * 8;
    const uint64_t end = blocks / 8 * (i + 1) / 4 * 8;
    workers.push_back(overwrite(env, *drive, first, end - first, 3));
  }
  co_await task::when_all(std::move(workers));
  EXPECT_EQ(fact(*drive, "blocks_used"), blocks);
  co_await drive->close();
}

SIM_TEST(Compress, KeepsItsSizeAndReadsEitherCodec) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "compress(file:d0,size=2M, virtual=4M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await write_bytes(*drive, 0, blocks_of(1, 8));
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  drive = co_await must_open(env, "compress(file:d0, codec=zstd)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(drive->geometry().bytes(), 4_MiB);
  co_await write_bytes(*drive, 8, blocks_of(2, 8));
  const auto both = co_await read_bytes(*drive, 7, 2);
  EXPECT_TRUE(both[0] == std::byte{1} && both[kBlock] == std::byte{2});
  co_await drive->close();
}

SIM_TEST(Compress, SaysWhatIsWrongAndWritesNothing) {
  sim::Medium& disk = cluster.node("host").disk("d0");
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "compress(file:d0,size=2M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  std::vector<Refusal> refusals{
      {"compress(file:d0, codec=zip)", "lz4 or zstd"},
      {"compress(file:d0, level=13)", "its highest"},
      {"compress(file:d0, virtual=1M)", "leave out virtual"},
      {"compress(mem:size=2M, virtual=4097)", "multiple"},
      {"compress(mem:size=64K)", "too small"},
      {"compress(slice(file:d0, length=1M))", "smaller"},
      {"thin(file:d0)", "another service"},
  };
  co_await expect_refusals(env, disk, std::move(refusals));
}

SIM_TEST(Compress, AChunkThatIsDamagedFailsAlone) {
  sim::Medium& disk = cluster.node("host").disk("d0");
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "compress(file:d0,size=2M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await write_bytes(*drive, 0, blocks_of(1, 8));
  // The first unit that data went to is the last block that is not empty.
  uint64_t at = disk.size() - kBlock;
  std::vector<std::byte> block(kBlock);
  for (disk.peek(at, block); std::ranges::all_of(block, [](auto b) { return b == std::byte{0}; });
       disk.peek(at, block)) {
    at -= kBlock;
  }
  co_await write_bytes(*drive, 8, blocks_of(2, 8));
  disk.poke(at, std::vector<std::byte>(kBlock, std::byte{0xff}));
  const Result<void> bad = co_await drive->read(Lba(3), block);
  EXPECT_EQ(bad.error(), Errc::kCorrupt);
  const Result<void> good = co_await drive->read(Lba(9), block);
  EXPECT_TRUE(good);
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
