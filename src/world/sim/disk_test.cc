// SPDX-License-Identifier: Apache-2.0
// Disks by the contract in env/disk.h, their faults, and what crashes leave of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/units.h"
#include "env/disk.h"
#include "env/env.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"
#include "world/sim/medium.h"
#include "world/sim/options.h"

namespace cairn::sim {
namespace {

using env::Disk;
using env::Env;
using task::Task;

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kSize = 64 * kBlock;

Buffer filled(Env& env, size_t blocks, uint8_t with) {
  Buffer buffer = std::move(*env.buffers().allocate(blocks * kBlock));
  std::ranges::fill(buffer.bytes(), std::byte{with});
  return buffer;
}

Task<Result<void>> write(Env& env, Disk& disk, uint64_t block, size_t blocks, uint8_t with) {
  const Buffer buffer = filled(env, blocks, with);
  const Result<void> written = co_await disk.write(block * kBlock, buffer.bytes());
  co_return written;
}
// The value all bytes of a block have; -1: they differ, -2: the read failed.
Task<int> read(Env& env, Disk& disk, uint64_t block) {
  const Buffer buffer = filled(env, 1, 0xee);
  const Result<void> got = co_await disk.read(block * kBlock, buffer.bytes());
  if (!got) co_return -2;
  const auto first = static_cast<uint8_t>(buffer.data()[0]);
  for (const std::byte byte : buffer.bytes()) {
    if (byte != std::byte{first}) co_return -1;
  }
  co_return first;
}

class DiskTest : public testing::Test {
 public:
  using Body = Task<void> (*)(Env&, Disk&, DiskTest&);
  struct Scene {
    Env& env;
    Disk& disk;
    DiskTest& test;
  };

  // Opens "d" on node a and runs `body` on it to its end.
  void run(Body body) {
    begin(body);
    ASSERT_TRUE(cluster().run_until([&] { return !node().is_running(); }, 100_s));
  }
  void begin(Body body) {
    node().start([this, body](Env& env) { return open_and_run(env, body, *this); });
  }
  static Task<void> open_and_run(Env& env, Body body, DiskTest& test) {
    auto disk = env.open_disk({.path = "d", .size = kSize, .create = true});
    EXPECT_TRUE(disk.has_value());
    if (disk) co_await body(env, **disk, test);
  }
  Cluster& cluster() {
    if (cluster_ == nullptr) cluster_ = std::make_unique<Cluster>(options_);
    return *cluster_;
  }
  Node& node() { return cluster().node("a"); }
  Medium& medium() { return node().disk("d"); }
  int peek(uint64_t block) {
    std::vector<std::byte> bytes(kBlock);
    medium().peek(block * kBlock, bytes);
    const bool is_uniform = std::ranges::count(bytes, bytes[0]) == kBlock;
    return is_uniform ? static_cast<int>(bytes[0]) : -1;
  }

  ClusterOptions options_;
  std::vector<int> log_;

 private:
  std::unique_ptr<Cluster> cluster_;
};

SIM_TEST_F(DiskTest, ReadsBackWhatWasWrittenAndZeroesElsewhere) {
  EXPECT_EQ(disk.size(), kSize);
  EXPECT_EQ(disk.block_size(), kBlock);
  const Result<void> written = co_await write(env, disk, 3, 2, 7);
  EXPECT_TRUE(written.has_value());
  const Result<void> zeroed = co_await disk.write_zeroes(4 * kBlock, kBlock);
  EXPECT_TRUE(zeroed.has_value());
  for (const auto& [block, value] : {std::pair{2, 0}, {3, 7}, {4, 0}, {5, 0}}) {
    const int got = co_await read(env, disk, block);
    EXPECT_EQ(got, value);
  }
  const Result<void> discarded = co_await disk.discard(0, kSize);
  EXPECT_TRUE(discarded.has_value());
  const int gone = co_await read(env, disk, 3);
  EXPECT_EQ(gone, 0);
}

SIM_TEST_F(DiskTest, MisalignedOrPastTheEndIsInvalid) {
  const Buffer buffer = filled(env, 2, 0);
  const Result<void> offset = co_await disk.read(512, buffer.first(kBlock));
  const Result<void> length = co_await disk.read(0, buffer.first(100));
  const Result<void> memory = co_await disk.read(0, buffer.subspan(512, kBlock));
  const Result<void> end = co_await disk.write(kSize, buffer.first(kBlock));
  for (const auto& result : {offset, length, memory, end}) {
    EXPECT_TRUE(result.error() == Errc::kInvalid);
  }
}

Task<void> open_facts(Env& env, bool& done) {
  EXPECT_TRUE(env.open_disk({.path = "x"}).error() == Errc::kNotFound);
  {
    const auto disk = env.open_disk({.path = "x", .size = 8192, .create = true});
    EXPECT_TRUE(disk.has_value());
    EXPECT_TRUE(env.open_disk({.path = "x"}).error() == Errc::kExists);
    const Result<void> grown = co_await (*disk)->resize(16384);
    EXPECT_TRUE(grown && (*disk)->size() == 16384);
  }
  EXPECT_TRUE(env.open_disk({.path = "x", .size = 8192}).error() == Errc::kInvalid);
  EXPECT_TRUE(env.open_disk({.path = "x", .block_size = 1000}).error() == Errc::kInvalid);
  const auto disk = env.open_disk({.path = "x", .read_only = true, .block_size = 512});
  EXPECT_TRUE(disk.has_value() && (*disk)->block_size() == 512);
  const Result<void> denied = co_await (*disk)->write_zeroes(0, 512);
  EXPECT_TRUE(denied.error() == Errc::kDenied);
  done = true;
}

TEST(DiskOpen, IsExclusiveAndChecksSizes) {
  bool done = false;
  Cluster cluster;
  cluster.node("a").start([&](Env& env) { return open_facts(env, done); });
  cluster.run_for(1_s);
  EXPECT_TRUE(done);
}

Task<void> note_order(Env& env, Disk& disk, int id, std::vector<int>& order) {
  const int got = co_await read(env, disk, static_cast<uint64_t>(id));
  EXPECT_EQ(got, 0);
  order.push_back(id);
}

TEST_F(DiskTest, RequestsInFlightTogetherCompleteInAnyOrder) {
  run([](Env& env, Disk& disk, DiskTest& test) -> Task<void> {
    std::vector<Task<void>> tasks;
    tasks.reserve(32);
    for (int i = 0; i < 32; ++i) tasks.push_back(note_order(env, disk, i, test.log_));
    co_await task::when_all(std::move(tasks));
  });
  EXPECT_EQ(log_.size(), 32u);
  EXPECT_FALSE(std::ranges::is_sorted(log_));
}

Task<void> write_rounds(Env& env, Disk& disk) {
  for (int round = 1; round <= 100; ++round) {
    const Result<void> written = co_await write(env, disk, 0, 8, static_cast<uint8_t>(round));
    EXPECT_TRUE(written.has_value());
  }
}
Task<void> count_torn_reads(Env& env, Disk& disk, int& torn) {
  const Buffer buffer = filled(env, 8, 0);
  for (int round = 0; round < 200; ++round) {
    const Result<void> got = co_await disk.read(0, buffer.bytes());
    EXPECT_TRUE(got.has_value());
    torn += buffer.data()[0] != buffer.data()[7 * kBlock];
  }
}

TEST_F(DiskTest, AReadMaySeeSomeBlocksOfAWriteInFlight) {
  run([](Env& env, Disk& disk, DiskTest& test) -> Task<void> {
    test.log_.push_back(0);
    co_await task::when_all(write_rounds(env, disk), count_torn_reads(env, disk, test.log_[0]));
  });
  EXPECT_GT(log_[0], 0);
}

// Blocks 0-9 flushed as 1; 10-19 written as 2 and not flushed; 20-29 written durably as 3; 30-39
// flushed as 1, then overwritten as 4; then a large write of 5 to 40-59 is in flight.
Task<void> write_generations(Env& env, Disk& disk, DiskTest& test) {
  Result<void> done = co_await write(env, disk, 0, 10, 1);
  EXPECT_TRUE(done.has_value());
  done = co_await write(env, disk, 30, 10, 1);
  EXPECT_TRUE(done.has_value());
  done = co_await disk.flush();
  EXPECT_TRUE(done.has_value());
  done = co_await write(env, disk, 10, 10, 2);
  EXPECT_TRUE(done.has_value());
  const Buffer durable = filled(env, 10, 3);
  done = co_await disk.write(20 * kBlock, durable.bytes(), {.durable = true});
  EXPECT_TRUE(done.has_value());
  done = co_await write(env, disk, 30, 10, 4);
  EXPECT_TRUE(done.has_value());
  test.log_.push_back(1);
  done = co_await write(env, disk, 40, 20, 5);
  EXPECT_FALSE(done.has_value()) << "crashed while in flight";
}

TEST_F(DiskTest, CrashKeepsExactlyWhatIsDurableAndASubsetOfTheRest) {
  int kept = 0;
  int lost = 0;
  int torn_runs = 0;
  int overwritten = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Cluster cluster({.seed = seed});
    Node& a = cluster.node("a");
    a.start([this](Env& env) { return open_and_run(env, &write_generations, *this); });
    Medium& disk = a.disk("d");
    ASSERT_TRUE(cluster.run_until([&] { return !std::exchange(log_, {}).empty(); }, 1_s));
    EXPECT_EQ(disk.volatile_block_count(), 20u);
    a.crash();
    EXPECT_EQ(disk.volatile_block_count(), 0u);
    const auto at = [&](uint64_t block) {
      std::byte bytes[kBlock];
      disk.peek(block * kBlock, bytes);
      EXPECT_EQ(std::ranges::count(bytes, bytes[0]), kBlock) << "a block is never torn";
      return static_cast<int>(bytes[0]);
    };
    int new_in_flight = 0;
    for (uint64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(at(i), 1);
      EXPECT_TRUE(at(10 + i) == 0 || at(10 + i) == 2);
      ++(at(10 + i) == 2 ? kept : lost);
      EXPECT_EQ(at(20 + i), 3);
      EXPECT_TRUE(at(30 + i) == 1 || at(30 + i) == 4);
      overwritten += at(30 + i) == 4;
    }
    for (uint64_t i = 40; i < 60; ++i) new_in_flight += at(i) == 5;
    torn_runs += new_in_flight > 0 && new_in_flight < 20;
  }
  EXPECT_GT(kept, 40);
  EXPECT_GT(lost, 40);
  EXPECT_GT(overwritten, 40);
  EXPECT_GT(torn_runs, 3);
}

TEST_F(DiskTest, KillKeepsEverythingThatCompleted) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Cluster cluster({.seed = seed});
    Node& a = cluster.node("a");
    a.start([this](Env& env) { return open_and_run(env, &write_generations, *this); });
    Medium& disk = a.disk("d");
    ASSERT_TRUE(cluster.run_until([&] { return !std::exchange(log_, {}).empty(); }, 1_s));
    a.kill();
    for (uint64_t block = 0; block < 40; ++block) {
      std::byte first[1];
      disk.peek(block * kBlock, first);
      EXPECT_EQ(static_cast<int>(first[0]), static_cast<int>("\1\2\3\4"[block / 10]));
    }
    a.restart();
    EXPECT_TRUE(cluster.run_until([&] { return !std::exchange(log_, {}).empty(); }, 1_s))
        << "the disk can be opened again";
    a.kill();
  }
}

SIM_TEST_F(DiskTest, FailingRangesFailUntilHealed) {
  test.medium().fail_reads({.offset = 2 * kBlock, .length = kBlock});
  test.medium().fail_writes({.offset = 5 * kBlock, .length = kBlock});
  const int good = co_await read(env, disk, 1);
  const int bad = co_await read(env, disk, 2);
  EXPECT_TRUE(good == 0 && bad == -2);
  const Result<void> written = co_await write(env, disk, 4, 4, 1);
  EXPECT_TRUE(written.error() == Errc::kIo);
  test.medium().heal();
  const int healed = co_await read(env, disk, 2);
  EXPECT_EQ(healed, 0);
}

SIM_TEST_F(DiskTest, LatentErrorLastsUntilRewritten) {
  test.medium().latent_error(2 * kBlock);
  test.medium().heal();
  const int bad = co_await read(env, disk, 2);
  EXPECT_EQ(bad, -2);
  const Result<void> written = co_await write(env, disk, 2, 1, 9);
  EXPECT_TRUE(written.has_value());
  const int good = co_await read(env, disk, 2);
  EXPECT_EQ(good, 9);
}

SIM_TEST_F(DiskTest, StallHoldsEverythingButCancellation) {
  const Time start = env.now();
  test.medium().stall(5_s);
  {
    const Buffer buffer = filled(env, 1, 0);
    task::Deadline deadline(env, env.now() + 1_s);
    const Result<void> timed_out = co_await disk.read(0, buffer.bytes(), deadline.token());
    EXPECT_TRUE(timed_out.error() == Errc::kTimedOut);
    EXPECT_LT(env.now() - start, 1100_ms);
  }
  const int got = co_await read(env, disk, 0);
  EXPECT_EQ(got, 0);
  EXPECT_GE(env.now() - start, 5_s);
}

SIM_TEST_F(DiskTest, FullFailsWritesWithNoSpace) {
  test.medium().full();
  const Result<void> failed = co_await write(env, disk, 0, 4, 1);
  EXPECT_TRUE(failed.error() == Errc::kNoSpace);
  const Result<void> discarded = co_await disk.discard(0, kSize);
  EXPECT_TRUE(discarded.has_value());
  test.medium().full(false);
  const Result<void> written = co_await write(env, disk, 0, 4, 1);
  EXPECT_TRUE(written.has_value());
}

SIM_TEST_F(DiskTest, CorruptChangesABitSilently) {
  const Result<void> written = co_await write(env, disk, 0, 4, 1);
  EXPECT_TRUE(written.has_value());
  test.medium().corrupt({.offset = kBlock, .length = kBlock});
  const int before = co_await read(env, disk, 0);
  const int damaged = co_await read(env, disk, 1);
  EXPECT_TRUE(before == 1 && damaged == -1);
}

TEST_F(DiskTest, LyingDrivesLoseOrMisplaceWrites) {
  run([](Env& env, Disk& disk, DiskTest& test) -> Task<void> {
    test.medium().set_faults({.lost = 1.0});
    Result<void> written = co_await write(env, disk, 3, 1, 1);
    EXPECT_TRUE(written.has_value());
    const int lost = co_await read(env, disk, 3);
    EXPECT_EQ(lost, 0);
    test.medium().set_faults({.misdirected = 1.0});
    written = co_await write(env, disk, 3, 1, 2);
    EXPECT_TRUE(written.has_value());
    test.medium().set_faults({});
  });
  int elsewhere = 0;
  for (uint64_t block = 0; block < kSize / kBlock; ++block) elsewhere += peek(block) == 2;
  EXPECT_EQ(elsewhere, 1);
  EXPECT_NE(peek(3), 2);
}

TEST_F(DiskTest, DrawnFaultsShowUpAtTheirRate) {
  options_.disk.faults = {.slow = 0.1, .read_error = 0.1, .write_error = 0.1, .flush_error = 0.1};
  run([](Env& env, Disk& disk, DiskTest& test) -> Task<void> {
    test.log_.assign(4, 0);
    for (int i = 0; i < 500; ++i) {
      const Time before = env.now();
      const int got = co_await read(env, disk, 0);
      test.log_[0] += got == -2;
      test.log_[3] += env.now() - before > 1_ms;
      const Result<void> written = co_await write(env, disk, 1, 1, 1);
      test.log_[1] += !written;
      const Result<void> flushed = co_await disk.flush();
      test.log_[2] += !flushed;
    }
  });
  for (const int count : log_) {
    EXPECT_GT(count, 20);
    EXPECT_LT(count, 100);
  }
}

}  // namespace
}  // namespace cairn::sim
