// SPDX-License-Identifier: Apache-2.0
// A cache whose drives fail: what the slow drive has is served whatever the fast one does, and one
// line that the slow drive does not take keeps no other from it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drive/filter_drive.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"
#include "world/sim/cluster.h"

namespace cairn::drive {
namespace {

constexpr uint64_t kLine = 16;            // blocks
constexpr uint64_t kDataOffset = 64_KiB;  // of the slow drive
constexpr const char* kThrough = "cache(file:slow,size=4M, file:fast,size=2M, mode=through)";

void fail_everything(sim::Medium& disk) {
  disk.fail_reads();
  disk.fail_writes();
  disk.fail_flushes();
}

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

SIM_TEST(FastCacheFaults, WriteThroughServesAllThatTheSlowDriveHas) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, kThrough, leaves);
  co_await keep_some(*drive, 8);
  fail_everything(disk("fast"));
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
  disk("fast").heal();
  EXPECT_TRUE((co_await task::sleep_for(env, 6_s)).has_value());
  EXPECT_TRUE(drive->concerns().empty());
  EXPECT_EQ(co_await read_value(*drive, kLine), 99);
  EXPECT_EQ(co_await read_value(*drive, 2 * kLine), 100);
  EXPECT_EQ(co_await read_value(*drive, 3 * kLine), 0);
  EXPECT_EQ(co_await read_value(*drive, 4 * kLine), 5);
  co_await drive->close();
}

SIM_TEST(FastCacheFaults, NobodyWaitsLongForAFastDriveThatDoesNotAnswer) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, kThrough, leaves);
  co_await keep_some(*drive, 8);
  disk("fast").stall(600_s);
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
  disk("fast").heal();
  co_await drive->close();
}

// A drive that keeps a write back when it is told to, and does it then, also when it was cancelled
// meanwhile: as one across a network may.
class LateDrive final : public FilterDrive {
 public:
  // `same` is the drive below.
  LateDrive(std::unique_ptr<Drive> below, Drive& same)
      : FilterDrive(std::move(below)), below_(&same) {}
  void keep_next() { keeps_next_ = true; }
  void let_go() { go_.set(); }
  size_t kept() const { return kept_; }
  task::Task<void> close() override {
    co_await gate_.close();
    co_await FilterDrive::close();
  }

 private:
  void start(DriveOp& op) override {
    const bool is_data = op.request.kind == Request::Kind::kWrite && !op.request.metadata;
    is_data&& std::exchange(keeps_next_, false) ? gate_.spawn(write_late(op)) : pass(op);
  }
  task::Task<void> write_late(DriveOp& op) {
    ++kept_;
    std::vector<std::byte> data;
    for (const MutableBytes piece : op.data()) data.insert(data.end(), piece.begin(), piece.end());
    const Lba lba = op.request.lba;
    const Result<void> waited = co_await go_.wait(op.token());
    if (!waited) op.complete(waited);
    const Result<void> gone = co_await go_.wait();
    EXPECT_TRUE(gone.has_value());
    const Result<void> written = co_await below_->write(lba, data);
    if (waited) op.complete(written);
    --kept_;
  }

  Drive* below_;
  bool keeps_next_ = false;
  task::Event go_;
  task::Gate gate_;
  size_t kept_ = 0;
};

struct LateLeaves final : SourceLeaves {
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    if (text != "late:") co_return co_await SourceLeaves::open(env, text);
    Leaf file = co_await SourceLeaves::open(env, "file:fast,size=2M");
    if (!file) co_return file;
    Drive& below = **file;
    auto drive = std::make_unique<LateDrive>(std::move(*file), below);
    late = drive.get();
    co_return std::move(drive);
  }
  LateDrive* late = nullptr;
};

task::Task<void> write_and_tell(Drive& drive, uint64_t block, uint8_t value, task::Event& done) {
  co_await write_value(drive, block, value);
  done.set();
}

task::Task<void> keep_late(env::Env& env, std::string mode) {
  LateLeaves leaves;
  const std::string text = "cache(file:slow,size=4M, late:, mode=" + mode + ")";
  const auto drive = co_await must_open(env, text, leaves);
  LateDrive& fast = *leaves.late;
  fast.keep_next();
  EXPECT_EQ(co_await read_value(*drive, 3), 0);
  EXPECT_EQ(fast.kept(), 1u) << "the block is on its way to the fast drive";
  EXPECT_TRUE((co_await task::sleep_for(env, 6_s)).has_value());
  task::Event written;
  task::Gate gate;
  gate.spawn(write_and_tell(*drive, 3, 7, written));
  EXPECT_TRUE((co_await task::sleep_for(env, 1_s)).has_value());
  EXPECT_EQ(written.is_set(), mode == "through") << "nobody waits needlessly";
  fast.let_go();
  EXPECT_TRUE((co_await written.wait()).has_value());
  EXPECT_TRUE((co_await task::sleep_for(env, 1_s)).has_value());
  EXPECT_EQ(fast.kept(), 0u);
  EXPECT_EQ(co_await read_value(*drive, 3), 7);
  EXPECT_EQ(co_await read_value(*drive, 3), 7);
  co_await gate.close();
  co_await drive->close();
}

TEST(FastCacheFaults, WhatIsKeptLateNeverHidesWhatWasWrittenMeanwhile) {
  for (const char* mode : {"through", "back"}) {
    sim::Cluster cluster;
    run_in_sim(cluster, [&](env::Env& env) { return keep_late(env, mode); });
  }
}

SIM_TEST(FastCacheFaults, OneBadSectorOfTheSlowDriveKeepsNoOtherLineDirty) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(
      env, "cache(file:slow,size=4M, file:fast,size=2M, mode=back, dirty=100)", leaves);
  for (uint64_t line = 0; line < 12; ++line) co_await write_value(*drive, line * kLine, 7, 2);
  disk("slow").fail_writes({.offset = kDataOffset + 3 * kLine * 4096, .length = 4096});
  auto told = co_await drive->tell({"flush"});
  EXPECT_FALSE(told.has_value());
  EXPECT_EQ(fact(*drive, "lines_dirty"), 1u);
  EXPECT_EQ(fact(*drive, "lines_stuck"), 1u);
  CO_ASSERT_TRUE(drive->concerns().size() == 1);
  EXPECT_EQ(drive->concerns()[0].code, "not_written_back");
  EXPECT_EQ(co_await read_value(*drive, 3 * kLine), 7);
  disk("slow").heal();
  told = co_await drive->tell({"flush"});
  EXPECT_EQ(told.value_or(told.error()), "1 lines written back, 0 are dirty again");
  EXPECT_TRUE(drive->concerns().empty());
  co_await drive->close();
}

SIM_TEST(FastCacheFaults, TheBackgroundGoesOnPastALineThatFails) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(
      env, "cache(file:slow,size=4M, file:fast,size=2M, mode=back, dirty=0)", leaves);
  disk("slow").fail_writes({.offset = kDataOffset, .length = 4096});
  for (uint64_t line = 0; line < 30; ++line) {
    co_await write_value(*drive, line * kLine, static_cast<uint8_t>(line + 1));
    EXPECT_TRUE((co_await task::sleep_for(env, 300_ms)).has_value());
  }
  EXPECT_LE(fact(*drive, "lines_dirty"), 5u) << "those of the last pause, and the bad one";
  EXPECT_EQ(fact(*drive, "lines_stuck"), 1u);
  // It is tried again, not for ever at once.
  disk("slow").heal();
  EXPECT_TRUE((co_await task::sleep_for(env, 2_s)).has_value());
  co_await write_value(*drive, 30 * kLine, 31);
  EXPECT_TRUE((co_await task::sleep_for(env, 2_s)).has_value());
  EXPECT_EQ(fact(*drive, "lines_dirty"), 0u);
  for (uint64_t line = 0; line <= 30; ++line) {
    EXPECT_EQ(co_await read_value(*drive, line * kLine), static_cast<int>(line + 1));
  }
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
