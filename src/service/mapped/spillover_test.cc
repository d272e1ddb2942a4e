// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/spillover.h"

#include <gtest/gtest.h>

#include "task/deadline.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

task::Task<Result<void>> write(Drive& drive, uint64_t block, uint8_t value) {
  const std::vector<std::byte> data = blocks_of(value, 1);
  co_return co_await drive.write(Lba(block), data);
}
// The first byte of a block; all of it must be the same. -1: it cannot be read.

constexpr uint64_t kChunk = 4;  // blocks
constexpr const char* kStack =
    "spillover(file:here,size=1M, file:there,size=4M, chunk=16K, drain_ms=50)";

// Every chunk in order; the local drive is full after the first `local`.
task::Task<uint64_t> fill(Drive& drive) {
  const uint64_t local = fact(drive, "chunks_local_free");
  for (uint64_t chunk = 0; chunk * kChunk < drive.geometry().blocks; ++chunk) {
    const Result<void> done =
        co_await write(drive, chunk * kChunk, static_cast<uint8_t>(chunk % 200 + 1));
    EXPECT_TRUE(done.has_value()) << chunk;
  }
  EXPECT_EQ(fact(drive, "chunks_local"), local);
  co_return local;
}

SIM_TEST(Spillover, FillsTheLocalDriveFirstAndDrainsBack) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, kStack, leaves);
  const uint64_t local = co_await fill(*drive);
  const uint64_t chunks = drive->geometry().blocks / kChunk;
  EXPECT_GT(local, 40u);
  EXPECT_GT(chunks, local + 250);
  EXPECT_EQ(fact(*drive, "chunks_elsewhere"), chunks - local);
  EXPECT_EQ(fact(*drive, "chunks_elsewhere_free"), 1u);

  // Ten local chunks go, ten from elsewhere take their places.
  EXPECT_TRUE((co_await drive->discard(Lba(0), 10 * kChunk)).has_value());
  EXPECT_TRUE((co_await drive->flush()).has_value());
  while (fact(*drive, "chunks_drained") < 10) {
    EXPECT_TRUE((co_await task::sleep_for(env, 10_ms)).has_value());
  }
  EXPECT_TRUE((co_await drive->flush()).has_value());
  EXPECT_EQ(fact(*drive, "chunks_local"), local);
  EXPECT_EQ(fact(*drive, "chunks_elsewhere"), chunks - local - 10);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    EXPECT_EQ(co_await read_value(*drive, chunk * kChunk),
              chunk < 10 ? 0 : static_cast<int>(chunk % 200 + 1));
  }
  // All of it fits the local drive in the end.
  EXPECT_TRUE((co_await drive->discard(Lba(0), (chunks - local) * kChunk)).has_value());
  while (fact(*drive, "chunks_elsewhere") > 0) {
    EXPECT_TRUE((co_await task::sleep_for(env, 10_ms)).has_value());
  }
  EXPECT_EQ(co_await read_value(*drive, (chunks - 1) * kChunk),
            static_cast<int>((chunks - 1) % 200 + 1));
  co_await drive->close();
}

SIM_TEST(Spillover, DrainsAtItsRate) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(
      env, "spillover(file:here,size=1M, file:there,size=4M, chunk=16K, drain_ms=1, rate=160K)",
      leaves);
  co_await fill(*drive);
  EXPECT_TRUE((co_await drive->discard(Lba(0), 41 * kChunk)).has_value());
  EXPECT_TRUE((co_await task::sleep_for(env, 2_s)).has_value());
  // Ten chunks a second, and a tenth of a second's worth at once.
  EXPECT_NEAR(static_cast<double>(fact(*drive, "chunks_drained")), 20, 2);
  co_await drive->close();
}

SIM_TEST(Spillover, GoesOnWithoutWhatIsElsewhere) {
  sim::Medium& there = cluster.node("host").disk("there");
  SourceLeaves leaves;
  auto drive = co_await must_open(env, kStack, leaves);
  const uint64_t local = co_await fill(*drive);
  EXPECT_TRUE((co_await drive->flush()).has_value());
  there.fail_reads();
  there.fail_writes();
  EXPECT_EQ(co_await read_value(*drive, 0), 1);
  EXPECT_TRUE((co_await write(*drive, 1, 9)).has_value());
  EXPECT_TRUE((co_await drive->flush()).has_value());
  EXPECT_EQ(co_await read_value(*drive, local * kChunk), -1);
  EXPECT_FALSE((co_await write(*drive, local * kChunk, 9)).has_value());
  there.heal();
  EXPECT_EQ(co_await read_value(*drive, local * kChunk), static_cast<int>(local + 1));
  co_await drive->close();
  drive = nullptr;
  leaves.close();

  // Opened without it: its chunks are kept for its return.
  drive = co_await must_open(env, "spillover(file:here, file:gone)", leaves);
  EXPECT_EQ(fact(*drive, "is_elsewhere_lost"), 1u);
  EXPECT_EQ(co_await read_value(*drive, 1), 9);
  EXPECT_EQ(co_await read_value(*drive, local * kChunk), -1);
  EXPECT_EQ((co_await write(*drive, local * kChunk, 9)).error().code(), Errc::kUnreachable);
  EXPECT_TRUE((co_await drive->discard(Lba(0), kChunk)).has_value());
  EXPECT_TRUE((co_await drive->flush()).has_value());
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  drive = co_await must_open(env, "spillover(file:here, file:there)", leaves);
  EXPECT_EQ(co_await read_value(*drive, local * kChunk), static_cast<int>(local + 1));
  EXPECT_EQ(co_await read_value(*drive, 1), 0);
  co_await drive->close();
}

SIM_TEST(Spillover, RefusesWhatIsNoPairAndWritesNothing) {
  sim::Medium& here = cluster.node("host").disk("here");
  sim::Medium& there = cluster.node("host").disk("there");
  SourceLeaves leaves;
  auto drive = co_await must_open(env, kStack, leaves);
  co_await fill(*drive);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  EXPECT_EQ(co_await why_not(env, "spillover(file:h2,size=1M, file:t2,size=4M)", leaves), "");
  leaves.close();
  std::vector<std::byte> before_here(1_MiB);
  std::vector<std::byte> before_there(4_MiB);
  here.peek(0, before_here);
  there.peek(0, before_there);
  const std::pair<const char*, const char*> refused[] = {
      {"spillover(file:there, file:here)", "in their order"},
      {"spillover(file:here, file:t2)", "another pair"},
      {"spillover(file:here, file:blank,size=4M)", "blank"},
      {"spillover(file:blank1,size=1M, file:there)", "local drive is blank"},
      {"spillover(file:here, file:small,size=1M)", "smaller"},
      {"spillover(file:here, file:there, chunk=64K)", "another size"},
      {"spillover(file:gone, file:there)", "missing"},
      {"spillover(file:new,size=1M, file:gone)", "both drives"},
      {"spillover(file:tiny,size=16K, file:tiny2,size=16K)", "too small"},
      {"spillover(mem:size=1M, mem:size=1M,block=512)", "block sizes"},
  };
  for (const auto& [stack, reason] : refused) {
    const std::string why = co_await why_not(env, stack, leaves);
    leaves.close();
    EXPECT_NE(why.find(reason), std::string::npos) << stack << ": " << why;
  }
  std::vector<std::byte> after_here(1_MiB);
  std::vector<std::byte> after_there(4_MiB);
  here.peek(0, after_here);
  there.peek(0, after_there);
  EXPECT_EQ(before_here, after_here);
  EXPECT_EQ(before_there, after_there);
}

}  // namespace
}  // namespace cairn::drive
