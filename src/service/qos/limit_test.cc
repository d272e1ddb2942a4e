// SPDX-License-Identifier: Apache-2.0
#include "service/qos/limit.h"

#include <gtest/gtest.h>

#include "service/common/token_bucket.h"
#include "task/deadline.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

TEST(TokenBucket, IsExact) {
  TokenBucket bucket(3, 2, Time{0});
  bucket.take(1, Time{0});
  bucket.take(1, Time{0});
  EXPECT_EQ(bucket.when(1, Time{0}).ns, 333'333'334);
  EXPECT_EQ(bucket.when(1, Time{333'333'334}).ns, 333'333'334);
  EXPECT_EQ(bucket.when(2, Time{333'333'334}).ns, 666'666'667);
}

TEST(TokenBucket, MoreThanTheBurstLeavesADebt) {
  TokenBucket bucket(1000, 10, Time{0});
  EXPECT_EQ(bucket.when(500, Time{0}).ns, 0);
  bucket.take(500, Time{0});
  EXPECT_EQ(bucket.when(1, Time{0}).ns, 491'000'000);
}

TEST(TokenBucket, NeverHoldsMoreThanTheBurst) {
  TokenBucket bucket(1'000'000'000'000, uint64_t{1} << 50, Time{0});
  EXPECT_EQ(bucket.when(UINT64_MAX, Time{INT64_MAX / 2}).ns, INT64_MAX / 2);
}

task::Task<void> read_one(Drive& drive, env::Env& env, uint64_t blocks, std::vector<Time>& done) {
  std::vector<std::byte> memory(blocks * 4096);
  const Result<void> read = co_await drive.read(Lba(0), memory);
  EXPECT_TRUE(read);
  done.push_back(env.now());
}

// When each of so many reads that start together is done, since they started.
task::Task<void> time_reads(env::Env& env, std::string text, size_t count, uint64_t blocks,
                            std::vector<Duration>& took) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  const Time start = env.now();
  std::vector<Time> done;
  std::vector<task::Task<void>> reads;
  for (size_t i = 0; i < count; ++i) reads.push_back(read_one(*drive, env, blocks, done));
  for (task::Task<void>& read : reads) co_await read;
  for (const Time one : done) took.push_back(one - start);
  co_await drive->close();
}

TEST(Limit, LetsABurstPassAndThenOneByOne) {
  std::vector<Duration> took;
  run_in_sim([&took](env::Env& env) {
    return time_reads(env, "limit(mem:size=1M, iops=100, burst_ms=20)", 5, 1, took);
  });
  EXPECT_EQ(took, (std::vector<Duration>{0_ms, 0_ms, 10_ms, 20_ms, 30_ms}));
}

TEST(Limit, CountsBytes) {
  std::vector<Duration> took;
  run_in_sim([&took](env::Env& env) {
    return time_reads(env, "limit(mem:size=1M, bytes=4M, burst_ms=125)", 3, 128, took);
  });
  EXPECT_EQ(took, (std::vector<Duration>{0_ms, 125_ms, 250_ms}));
}

task::Task<void> cancel_one(env::Env& env, Duration& took) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "limit(mem:size=1M, iops=10, burst_ms=0)", leaves);
  const Time start = env.now();
  std::vector<Time> done;
  task::Task<void> first = read_one(*drive, env, 1, done);
  task::Deadline deadline(env, start + 1_ms);
  std::vector<std::byte> memory(4096);
  const Result<void> stopped = co_await drive->read(Lba(0), memory, deadline.token());
  EXPECT_TRUE(!stopped && stopped.error() == Errc::kTimedOut);
  EXPECT_EQ(env.now() - start, 1_ms);
  co_await read_one(*drive, env, 1, done);
  took = env.now() - start;
  co_await first;
  co_await drive->close();
}

TEST(Limit, AWaitingRequestThatIsCancelledCostsNothing) {
  Duration took;
  run_in_sim([&took](env::Env& env) { return cancel_one(env, took); });
  EXPECT_EQ(took, 100_ms);
}

}  // namespace
}  // namespace cairn::drive
