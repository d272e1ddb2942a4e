// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/atomic.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "service/integrity/atomic_format.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr std::string_view kStack = "atomic(file:d,size=2M, unit=64K, log=256K)";
constexpr uint64_t kDataFirst = 80;  // 2 blocks of label and 64 of log, rounded up to the unit

task::Task<void> write_one(Drive& drive, uint64_t lba, uint8_t value, size_t blocks) {
  const std::vector<std::byte> data = blocks_of(value, blocks);
  const Result<void> written = co_await drive.write(Lba(lba), data);
  EXPECT_TRUE(written);
}

task::Task<bool> holds(Drive& drive, uint64_t lba, uint8_t value, size_t blocks) {
  std::vector<std::byte> data = blocks_of(0, blocks);
  const Result<void> read = co_await drive.read(Lba(lba), data);
  co_return read&& data == blocks_of(value, blocks);
}

TEST(AtomicFormat, ABatchIsReadBack) {
  const AtomicBatch::Name name{.id = {1, 2}, .generation = 3, .index = 4};
  const AtomicLayout layout{.log_blocks = 64, .data_first = 80, .data_blocks = 100};
  AtomicBatch batch{.name = name, .content_checksum = 5, .records = {{7, 16}, {99, 1}}};
  std::vector<std::byte> block(4096);
  encode_atomic_batch(batch, block);
  const Result<AtomicBatch> read = decode_atomic_batch(block, name, layout, 64);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->records[1].first, 99U);
  EXPECT_EQ(read->content_blocks(), 17U);
  EXPECT_EQ(read->content_checksum, 5U);

  AtomicBatch::Name next = name;
  next.index = 5;
  EXPECT_EQ(decode_atomic_batch(block, next, layout, 64).error(), Errc::kNotFound);
  EXPECT_EQ(decode_atomic_batch(block, name, layout, 17).error(), Errc::kCorrupt);
  block[100] ^= std::byte{1};
  EXPECT_EQ(decode_atomic_batch(block, name, layout, 64).error(), Errc::kNotFound);
  batch.records[1].blocks = UINT64_MAX;
  encode_atomic_batch(batch, block);
  EXPECT_EQ(decode_atomic_batch(block, name, layout, 64).error(), Errc::kCorrupt);
}

TEST(AtomicFormat, ALayoutThatCannotBeIsRefused) {
  const auto decode = [](const AtomicLayout& layout) {
    return decode_atomic_layout({.blocks = 100, .body = encode_atomic_layout(layout)});
  };
  EXPECT_TRUE(decode({.log_blocks = 10, .data_first = 12, .data_blocks = 88}));
  EXPECT_FALSE(decode({.log_blocks = 10, .data_first = 11, .data_blocks = 88}));
  EXPECT_FALSE(decode({.log_blocks = 10, .data_first = 12, .data_blocks = 89}));
  EXPECT_FALSE(decode({.log_blocks = UINT64_MAX, .data_first = 12, .data_blocks = 1}));
  EXPECT_FALSE(decode({.log_blocks = 10, .data_first = UINT64_MAX, .data_blocks = 1}));
}

SIM_TEST(Atomic, WritesThatArriveTogetherShareAWriteOfTheLog) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::string(kStack), leaves);
  EXPECT_EQ(drive->geometry().atomic_blocks, 16U);
  EXPECT_EQ(drive->geometry().blocks, 512 - kDataFirst);
  std::vector<task::Task<void>> writes;
  for (uint8_t i = 0; i < 8; ++i) writes.push_back(write_one(*drive, 100 + i * 4U, i + 1, 4));
  co_await task::when_all(std::move(writes));
  EXPECT_EQ(fact(*drive, "writes_logged"), 8U);
  EXPECT_EQ(fact(*drive, "log_writes"), 2U);  // the first one alone, the others together
  for (uint8_t i = 0; i < 8; ++i) {
    const bool is_there = co_await holds(*drive, 100 + i * 4U, i + 1, 4);
    EXPECT_TRUE(is_there);
  }
  co_await write_one(*drive, 300, 9, 1);  // the disk writes a block as a whole
  EXPECT_EQ(fact(*drive, "writes_direct"), 1U);
  co_await write_one(*drive, 100, 9, 1);  // the log holds an older one, which must not come back
  EXPECT_EQ(fact(*drive, "writes_direct"), 1U);
  const Result<void> zeroed = co_await drive->write_zeroes(Lba(96), 20);
  EXPECT_TRUE(zeroed);
  EXPECT_EQ(fact(*drive, "log_blocks_used"), 0U);
  co_await drive->close();
}

SIM_TEST(Atomic, AWriteThatFailsInPlaceIsNeverReadInParts) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::string(kStack), leaves);
  co_await write_one(*drive, 0, 1, 8);
  sim::Medium& disk = cluster.node("host").disk("d");
  disk.fail_writes({.offset = (kDataFirst + 4) * 4096, .length = 4096});
  const std::vector<std::byte> fresh = blocks_of(2, 8);
  const Result<void> written = co_await drive->write(Lba(0), fresh);
  EXPECT_TRUE(!written && written.error() == Errc::kIo);
  std::vector<std::byte> data = blocks_of(0, 8);
  const Result<void> read = co_await drive->read(Lba(0), data);
  EXPECT_TRUE(!read && read.error() == Errc::kIo);
  const bool is_elsewhere = co_await holds(*drive, 100, 0, 8);
  EXPECT_TRUE(is_elsewhere);
  disk.heal();
  const bool is_whole = co_await holds(*drive, 0, 2, 8);
  EXPECT_TRUE(is_whole);
  co_await drive->close();
}

SIM_TEST(Atomic, AWriteThatCannotBeLoggedChangesNothing) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::string(kStack), leaves);
  co_await write_one(*drive, 0, 1, 8);
  sim::Medium& disk = cluster.node("host").disk("d");
  disk.fail_writes({.offset = 2 * 4096, .length = 64 * 4096});
  const std::vector<std::byte> fresh = blocks_of(2, 8);
  const Result<void> written = co_await drive->write(Lba(0), fresh);
  EXPECT_TRUE(!written && written.error() == Errc::kIo);
  const bool is_old = co_await holds(*drive, 0, 1, 8);
  EXPECT_TRUE(is_old);
  disk.heal();
  co_await write_one(*drive, 0, 3, 8);
  const bool is_new = co_await holds(*drive, 0, 3, 8);
  EXPECT_TRUE(is_new);
  co_await drive->close();
}

SIM_TEST(Atomic, ACancelledWriteEndsAtOnceAndIsNeverTorn) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::string(kStack), leaves);
  cluster.node("host").disk("d").stall(1_s);
  const Time start = env.now();
  task::Deadline deadline(env, start + 1_ms);
  std::vector<std::byte> data = blocks_of(1, 8);
  const Result<void> written = co_await drive->write(Lba(0), data, deadline.token());
  EXPECT_TRUE(!written && written.error() == Errc::kTimedOut);
  EXPECT_EQ(env.now() - start, 1_ms);
  data = blocks_of(9, 8);  // the memory is the caller's again
  const bool is_whole = co_await holds(*drive, 0, 1, 8);
  EXPECT_TRUE(is_whole);
  co_await drive->close();
}

// A batch in the log that an attacker with the drive's id wrote.
SIM_TEST(Atomic, ALogThatPointsPastTheEndIsRefused) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::string(kStack), leaves);
  co_await drive->close();
  drive.reset();
  leaves.close();
  sim::Medium& disk = cluster.node("host").disk("d");
  std::vector<std::byte> block(4096);
  disk.peek(0, block);
  const Result<Label> label = decode_label(kAtomicLabel, block);
  CO_ASSERT_TRUE(label);
  const AtomicBatch batch{.name = {.id = label->id, .generation = label->generation},
                          .content_checksum = crc32c(block),
                          .records = {{.first = 512 - kDataFirst, .blocks = 1}}};
  encode_atomic_batch(batch, block);
  disk.poke(2 * 4096, block);
  const std::string why = co_await why_not(env, std::string(kStack), leaves);
  EXPECT_TRUE(why.find("makes no sense") != std::string::npos) << why;
}

SIM_TEST(Atomic, WhatDoesNotFitIsRefused) {
  SourceLeaves leaves;
  std::string why = co_await why_not(env, "atomic(mem:size=1M)", leaves);
  EXPECT_TRUE(why.find("too small") != std::string::npos) << why;
  why = co_await why_not(env, "atomic(mem:size=4M, unit=48K)", leaves);
  EXPECT_TRUE(why.find("power of two") != std::string::npos) << why;
  why = co_await why_not(env, "atomic(mem:size=4M, unit=128K, log=64K)", leaves);
  EXPECT_TRUE(why.find("no room") != std::string::npos) << why;
  why = co_await why_not(env, "atomic(mirror(file:a,size=4M, file:b,size=4M))", leaves);
  EXPECT_EQ(why, "");
  leaves.close();
  why = co_await why_not(env, "atomic(file:a)", leaves);
  EXPECT_TRUE(why.find("holds something else") != std::string::npos) << why;
}

}  // namespace
}  // namespace cairn::drive
