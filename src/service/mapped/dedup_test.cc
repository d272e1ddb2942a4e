// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/dedup.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "service/mapped/content_index.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr size_t kBlock = 4096;

// Another block for each number but 0, which is a block of zeroes.
std::vector<std::byte> block_of(uint64_t number) {
  std::vector<std::byte> bytes(kBlock);
  for (size_t at = 0; at < kBlock; at += 8) store(MutableBytes(bytes).subspan(at), number);
  return bytes;
}
std::vector<std::byte> counted_blocks(uint64_t first, size_t count) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<std::byte> one = block_of(first + i);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

TEST(ContentIndex, FindsWhatIsReferredToAndNothingElse) {
  constexpr uint32_t kUnits = 300;
  ContentIndex index(kUnits, {1, 2});
  std::map<uint32_t, uint64_t> model;  // units and hashes
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto unit = static_cast<uint32_t>(rng.below(kUnits));
    // Few of them, so that neighbours and equals abound.
    const uint64_t hash = rng.below(400);
    if (model.contains(unit)) {
      EXPECT_EQ(index.hash(unit), model[unit]);
      EXPECT_TRUE(index.drop(unit));
      model.erase(unit);
    } else {
      index.add(unit, hash);
      model[unit] = hash;
    }
    const uint64_t asked = rng.below(400);
    const std::optional<uint32_t> found = index.find(asked);
    if (found) {
      ASSERT_TRUE(model.contains(*found));
      EXPECT_EQ(model[*found], asked);
    }
  }
}

// Hashes are of contents that a tenant chooses, and end alike.
TEST(ContentIndex, HashesThatEndAlikeDoNotLieTogether) {
  constexpr uint32_t kUnits = 10'000;
  ContentIndex index(kUnits, {0x1234, 0x5678});
  size_t max = 0;
  for (uint32_t unit = 0; unit < kUnits; ++unit) {
    const uint64_t hash = uint64_t{unit} << 32 | 7;
    max = std::max(max, index.probes(hash));
    index.add(unit, hash);
  }
  EXPECT_LT(max, 200U);
  for (uint32_t unit = 0; unit < kUnits; ++unit) {
    EXPECT_EQ(index.find(uint64_t{unit} << 32 | 7), unit);
  }
}

TEST(ContentIndex, CountsReferences) {
  ContentIndex index(4, {1, 2});
  index.add(2, 77);
  EXPECT_TRUE(index.refer(2));
  EXPECT_FALSE(index.drop(2));
  EXPECT_EQ(index.find(77), 2U);
  EXPECT_TRUE(index.drop(2));
  EXPECT_EQ(index.find(77), std::nullopt);
}

TEST(ContentHash, DiffersByEveryBitAndLength) {
  std::vector<std::byte> bytes(512);
  std::map<uint64_t, int> seen;
  ++seen[content_hash(bytes)];
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ++seen[content_hash(bytes)];
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
  for (size_t size = 0; size < 512; ++size) ++seen[content_hash(Bytes(bytes).first(size))];
  EXPECT_EQ(seen.size(), 1 + 512 * 8 + 512U);
}

SIM_TEST(Dedup, EqualBlocksTakeTheSpaceOfOneAndGiveItBack) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "dedup(file:d0,size=4M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const std::vector<std::byte> data = counted_blocks(1, 20);
  for (uint64_t copy = 0; copy < 10; ++copy) co_await write_bytes(*drive, copy * 20, data);
  EXPECT_EQ(fact(*drive, "blocks_written"), 200U);
  EXPECT_EQ(fact(*drive, "blocks_used"), 20U);
  EXPECT_EQ(fact(*drive, "blocks_saved"), 180U);
  for (uint64_t copy = 0; copy < 10; ++copy) {
    const auto found = co_await read_bytes(*drive, copy * 20, 20);
    EXPECT_EQ(found, data);
  }
  // Zeroes take nothing.
  co_await write_bytes(*drive, 300, std::vector<std::byte>(5 * kBlock));
  EXPECT_EQ(fact(*drive, "blocks_used"), 20U);
  EXPECT_TRUE(drive->extent_at(Lba(300), 5).is_hole);
  // One copy changes, the others stay.
  co_await write_bytes(*drive, 40, counted_blocks(1000, 20));
  EXPECT_EQ(fact(*drive, "blocks_used"), 40U);
  const auto beside = co_await read_bytes(*drive, 60, 20);
  EXPECT_EQ(beside, data);
  for (uint64_t copy = 0; copy < 10; ++copy) {
    const Result<void> discarded = co_await drive->discard(Lba(copy * 20), 20);
    EXPECT_TRUE(discarded);
    const uint64_t used = copy < 2 ? 40 : copy < 9 ? 20 : 0;
    EXPECT_EQ(fact(*drive, "blocks_used"), used) << copy;
  }
  EXPECT_EQ(fact(*drive, "blocks_written"), 0U);
  co_await drive->close();
}

SIM_TEST(Dedup, RemembersWhatIsEqualWhenItIsOpenedAgain) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "dedup(file:d0,size=4M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const std::vector<std::byte> data = counted_blocks(1, 30);
  co_await write_bytes(*drive, 0, data);
  co_await write_bytes(*drive, 100, data);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  drive = co_await must_open(env, "dedup(file:d0)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(fact(*drive, "blocks_used"), 30U);
  co_await write_bytes(*drive, 200, data);
  EXPECT_EQ(fact(*drive, "blocks_used"), 30U);
  EXPECT_EQ(fact(*drive, "blocks_saved"), 60U);
  co_await drive->close();
}

SIM_TEST(Dedup, HoldsMoreThanThereIsAndSaysWhenItIsFull) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "dedup(file:d0,size=2M, virtual=8M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(drive->geometry().bytes(), 8_MiB);
  const std::vector<std::byte> data = counted_blocks(1, 64);
  for (uint64_t at = 0; at < 2048; at += 64) co_await write_bytes(*drive, at, data);
  EXPECT_EQ(fact(*drive, "blocks_used"), 64U);
  Result<void> done;
  uint64_t at = 0;
  for (; done && at < 2048; at += 8) {
    const std::vector<std::byte> unique = counted_blocks(10'000 + at, 8);
    done = co_await drive->write(Lba(at), unique);
  }
  EXPECT_EQ(done.error(), Errc::kNoSpace);
  at -= 8;
  EXPECT_GT(at, 300U);
  const auto last = co_await read_bytes(*drive, at - 8, 8);
  EXPECT_EQ(last, counted_blocks(10'000 + at - 8, 8));
  // What is there already needs no room.
  co_await write_bytes(*drive, 1900, data);
  const Result<void> discarded = co_await drive->discard(Lba(0), 8);
  EXPECT_TRUE(discarded);
  co_await write_bytes(*drive, at, counted_blocks(10'000 + at, 8));
  co_await drive->close();
}

task::Task<void> overwrite(Drive& drive, uint64_t first, uint64_t count, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    for (uint64_t at = first; at < first + count; ++at) {
      const std::vector<std::byte> unique = block_of(at * 100 + static_cast<uint64_t>(i) + 1);
      co_await write_bytes(drive, at, unique);
    }
  }
}

SIM_TEST(Dedup, DefaultSizeHoldsBlocksThatAllDiffer) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "dedup(file:d0,size=2M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const uint64_t blocks = drive->geometry().blocks;
  EXPECT_GT(blocks, 350U);
  std::vector<task::Task<void>> workers;
  for (uint64_t i = 0; i < 4; ++i) {
    const uint64_t first = blocks * i / 4;
    workers.push_back(overwrite(*drive, first, blocks * (i + 1) / 4 - first, 3));
  }
  co_await task::when_all(std::move(workers));
  EXPECT_EQ(fact(*drive, "blocks_used"), blocks);
  co_await drive->close();
}

// Its twin lost its bytes: what is written is not thrown away for it.
SIM_TEST(Dedup, ComparesBeforeItBelieves) {
  sim::Medium& disk = cluster.node("host").disk("d0");
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "dedup(file:d0,size=2M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const std::vector<std::byte> data = block_of(5);
  co_await write_bytes(*drive, 0, data);
  std::vector<std::byte> block(kBlock);
  uint64_t at = 0;
  for (; block != data && at < disk.size(); at += kBlock) disk.peek(at, block);
  disk.corrupt({.offset = at - kBlock, .length = kBlock});
  co_await write_bytes(*drive, 1, data);
  EXPECT_EQ(fact(*drive, "collisions"), 1U);
  EXPECT_EQ(fact(*drive, "blocks_used"), 2U);
  const auto found = co_await read_bytes(*drive, 1, 1);
  EXPECT_EQ(found, data);
  co_await drive->close();
}

SIM_TEST(Dedup, SaysWhatIsWrongAndWritesNothing) {
  sim::Medium& disk = cluster.node("host").disk("d0");
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "dedup(file:d0,size=2M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  std::vector<Refusal> refusals{
      {"dedup(file:d0, virtual=1M)", "leave out virtual"},
      {"dedup(mem:size=2M, virtual=4097)", "multiple"},
      {"dedup(mem:size=64K)", "too small"},
      {"dedup(slice(file:d0, length=1M))", "smaller"},
      {"compress(file:d0)", "another service"},
  };
  co_await expect_refusals(env, disk, std::move(refusals));
}

// The record that makes the journal write by itself may be the one that makes it save the map.
SIM_TEST(Dedup, MapIsSavedWithTheChangeThatFillsTheJournal) {
  SourceLeaves leaves;
  uint64_t expected = 0;
  for (int round = 0; round < 40; ++round) {
    auto drive = co_await must_open(env, "dedup(file:d0,size=64M)", leaves);
    CO_ASSERT_TRUE(drive != nullptr);
    EXPECT_EQ(fact(*drive, "blocks_written"), expected) << round;
    const uint64_t end = env.rng().between(16, 56) * 256;
    const std::vector<std::byte> data = counted_blocks(1, 256);
    for (uint64_t at = 0; at < end; at += 256) co_await write_bytes(*drive, at, data);
    expected = fact(*drive, "blocks_written") - end;
    const Result<void> discarded = co_await drive->discard(Lba(0), end);
    EXPECT_TRUE(discarded);
    EXPECT_EQ(fact(*drive, "blocks_written"), expected) << round;
    co_await drive->close();
  }
}

}  // namespace
}  // namespace cairn::drive
