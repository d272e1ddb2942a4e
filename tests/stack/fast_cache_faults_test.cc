// SPDX-License-Identifier: Apache-2.0
// A cache whose drives fail: what the slow drive has is served whatever the fast one does, and one
// line that the slow drive does not take keeps no other from it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "drive/service_testing.h"
#include "sim/cluster.h"
#include "task/deadline.h"

namespace cairn::drive {
namespace {

constexpr uint64_t kLine = 16;            // blocks
constexpr uint64_t kDataOffset = 64_KiB;  // of the slow drive
constexpr const char* kThrough = "cache(file:slow,size=4M, file:fast,size=2M, mode=through)";

class FastCacheFaults : public testing::Test {
 protected:
  sim::Medium& slow() { return cluster_.node("host").disk("slow"); }
  sim::Medium& fast() { return cluster_.node("host").disk("fast"); }
  void fail_fast() {
    fast().fail_reads();
    fast().fail_writes();
    fast().fail_flushes();
  }
  sim::Cluster cluster_;
};

// Writes blocks and reads them until the fast drive has them.
task::Task<void> keep_some(Drive& drive, uint64_t count) {
  for (uint64_t block = 0; block < count; ++block) {
    co_await write_value(drive, block * kLine, static_cast<uint8_t>(block + 1));
    EXPECT_EQ(co_await read_value(drive, block * kLine), static_cast<int>(block + 1));
  }
  const uint64_t hits = fact(drive, "hits");
  EXPECT_EQ(co_await read_value(drive, 0), 1);
  EXPECT_EQ(fact(drive, "hits"), hits + 1) << "it is on the fast drive";
}

TEST_F(FastCacheFaults, WriteThroughServesAllThatTheSlowDriveHas) {
  run_in_sim(cluster_, [this](env::Env& env) -> task::Task<void> {
    SourceLeaves leaves;
    const auto drive = co_await must_open(env, kThrough, leaves);
    co_await keep_some(*drive, 8);
    fail_fast();
    for (uint64_t block = 0; block < 8; ++block) {
      EXPECT_EQ(co_await read_value(*drive, block * kLine), static_cast<int>(block + 1));
    }
    EXPECT_GT(fact(*drive, "fast_errors"), 0u);
    CO_ASSERT_TRUE(drive->concerns().size() == 1);
    EXPECT_EQ(drive->concerns()[0].code, "fast_drive_fails");
    co_await write_value(*drive, kLine, 99);
    EXPECT_EQ(co_await read_value(*drive, kLine), 99);
    const std::vector<std::byte> data = blocks_of(100, 1);
    const MutableBytes piece(const_cast<std::byte*>(data.data()), data.size());
    const Request durable{
        .kind = Request::Kind::kWrite, .durable = true, .lba = Lba(2 * kLine), .blocks = 1};
    EXPECT_TRUE((co_await drive->submit(durable, {&piece, 1})).has_value());
    EXPECT_TRUE((co_await drive->compare(Lba(2 * kLine), data)).has_value());
    EXPECT_TRUE((co_await drive->discard(Lba(3 * kLine), 1)).has_value());
    EXPECT_TRUE((co_await drive->flush()).has_value());

    // It comes back with what it had: nothing of that is taken for new.
    fast().heal();
    EXPECT_TRUE((co_await task::sleep_for(env, 6_s)).has_value());
    EXPECT_TRUE(drive->concerns().empty());
    EXPECT_EQ(co_await read_value(*drive, kLine), 99);
    EXPECT_EQ(co_await read_value(*drive, 2 * kLine), 100);
    EXPECT_EQ(co_await read_value(*drive, 3 * kLine), 0);
    EXPECT_EQ(co_await read_value(*drive, 4 * kLine), 5);
    co_await drive->close();
  });
}

TEST_F(FastCacheFaults, NobodyWaitsLongForAFastDriveThatDoesNotAnswer) {
  run_in_sim(cluster_, [this](env::Env& env) -> task::Task<void> {
    SourceLeaves leaves;
    const auto drive = co_await must_open(env, kThrough, leaves);
    co_await keep_some(*drive, 8);
    fast().stall(600_s);
    const Time begin = env.now();
    for (uint64_t block = 0; block < 8; ++block) {
      EXPECT_EQ(co_await read_value(*drive, block * kLine), static_cast<int>(block + 1));
      co_await write_value(*drive, block * kLine, 50);
    }
    EXPECT_LT(env.now() - begin, 1_s);
    // Each time it is tried again costs as little.
    EXPECT_TRUE((co_await task::sleep_for(env, 6_s)).has_value());
    const Time again = env.now();
    for (uint64_t block = 0; block < 8; ++block) {
      co_await write_value(*drive, block * kLine, 60);
      co_await write_value(*drive, block * kLine, 61);
      EXPECT_EQ(co_await read_value(*drive, block * kLine), 61);
    }
    EXPECT_LT(env.now() - again, 1_s);
    EXPECT_TRUE((co_await drive->flush()).has_value());
    fast().heal();
    co_await drive->close();
  });
}

TEST_F(FastCacheFaults, OneBadSectorOfTheSlowDriveKeepsNoOtherLineDirty) {
  run_in_sim(cluster_, [this](env::Env& env) -> task::Task<void> {
    SourceLeaves leaves;
    const auto drive = co_await must_open(
        env, "cache(file:slow,size=4M, file:fast,size=2M, mode=back, dirty=100)", leaves);
    for (uint64_t line = 0; line < 12; ++line) co_await write_value(*drive, line * kLine, 7, 2);
    slow().fail_writes({.offset = kDataOffset + 3 * kLine * 4096, .length = 4096});
    auto told = co_await drive->tell({"flush"});
    EXPECT_FALSE(told.has_value());
    EXPECT_EQ(fact(*drive, "lines_dirty"), 1u);
    EXPECT_EQ(fact(*drive, "lines_stuck"), 1u);
    CO_ASSERT_TRUE(drive->concerns().size() == 1);
    EXPECT_EQ(drive->concerns()[0].code, "not_written_back");
    EXPECT_EQ(co_await read_value(*drive, 3 * kLine), 7);
    slow().heal();
    told = co_await drive->tell({"flush"});
    EXPECT_EQ(told.value_or(told.error()), "1 lines written back, 0 are dirty again");
    EXPECT_TRUE(drive->concerns().empty());
    co_await drive->close();
  });
}

TEST_F(FastCacheFaults, TheBackgroundGoesOnPastALineThatFails) {
  run_in_sim(cluster_, [this](env::Env& env) -> task::Task<void> {
    SourceLeaves leaves;
    const auto drive = co_await must_open(
        env, "cache(file:slow,size=4M, file:fast,size=2M, mode=back, dirty=0)", leaves);
    slow().fail_writes({.offset = kDataOffset, .length = 4096});
    for (uint64_t line = 0; line < 30; ++line) {
      co_await write_value(*drive, line * kLine, static_cast<uint8_t>(line + 1));
      EXPECT_TRUE((co_await task::sleep_for(env, 300_ms)).has_value());
    }
    EXPECT_LE(fact(*drive, "lines_dirty"), 5u) << "those of the last pause, and the bad one";
    EXPECT_EQ(fact(*drive, "lines_stuck"), 1u);
    // It is tried again, not for ever at once.
    slow().heal();
    EXPECT_TRUE((co_await task::sleep_for(env, 2_s)).has_value());
    co_await write_value(*drive, 30 * kLine, 31);
    EXPECT_TRUE((co_await task::sleep_for(env, 2_s)).has_value());
    EXPECT_EQ(fact(*drive, "lines_dirty"), 0u);
    for (uint64_t line = 0; line <= 30; ++line) {
      EXPECT_EQ(co_await read_value(*drive, line * kLine), static_cast<int>(line + 1));
    }
    co_await drive->close();
  });
}

}  // namespace
}  // namespace cairn::drive
