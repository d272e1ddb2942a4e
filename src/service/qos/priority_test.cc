// SPDX-License-Identifier: Apache-2.0
#include "service/qos/priority.h"

#include <gtest/gtest.h>

#include "task/deadline.h"
#include "task/gate.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

// Reads of one block, one after the other until the time is over.
task::Task<void> read_on(env::Env& env, Drive& drive, Priority priority, Time end,
                         uint64_t& count) {
  std::vector<std::byte> memory(4096);
  const MutableBytes piece(memory);
  while (env.now() < end) {
    const Request request{.priority = priority, .lba = Lba(0), .blocks = 1};
    const Result<void> read = co_await drive.submit(request, {&piece, 1});
    EXPECT_TRUE(read);
    ++count;
  }
}

struct Mix {
  std::string stack;
  size_t interactive = 0;
  size_t batch = 0;
  uint64_t interactive_done = 0;
  uint64_t batch_done = 0;
};

task::Task<void> contend(env::Env& env, Mix& mix) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, mix.stack, leaves);
  const Time end = env.now() + 10_s;
  std::vector<task::Task<void>> readers;
  for (size_t i = 0; i < mix.batch; ++i) {
    readers.push_back(read_on(env, *drive, Priority::kLow, end, mix.batch_done));
  }
  for (size_t i = 0; i < mix.interactive; ++i) {
    readers.push_back(read_on(env, *drive, Priority::kNormal, end, mix.interactive_done));
  }
  for (task::Task<void>& reader : readers) co_await reader;
  co_await drive->close();
}

// A drive that serves 1000 requests per second, whoever comes.
Mix run(size_t interactive, size_t batch, const std::string& options) {
  Mix mix{.stack = "priority(limit(mem:size=1M, iops=1000, burst_ms=0), " + options + ")",
          .interactive = interactive,
          .batch = batch};
  run_in_sim([&mix](env::Env& env) { return contend(env, mix); });
  return mix;
}

TEST(Priority, BatchKeepsItsFloorAndNoMore) {
  const Mix mix = run(8, 8, "depth=4, floor=10");
  const auto all = static_cast<double>(mix.batch_done + mix.interactive_done);
  EXPECT_NEAR(static_cast<double>(mix.batch_done) / all, 0.1, 0.01);
}

TEST(Priority, BatchKeepsItsFloorBesideMoreThanItsShareOfTheDepth) {
  const Mix mix = run(32, 8, "floor=10");
  const auto all = static_cast<double>(mix.batch_done + mix.interactive_done);
  EXPECT_NEAR(static_cast<double>(mix.batch_done) / all, 0.1, 0.01);
}

// Requests on a busy part of a drive, and one that its idle part would answer at once.
SIM_TEST(Priority, ABusyPartOfADriveDoesNotKeepFromAnother) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(
      env, "priority(concat(mem:size=1M, limit(mem:size=1M, iops=10, burst_ms=0)))", leaves);
  const Lba slow(256);
  std::vector<std::byte> memory(4096);
  task::Gate gate;
  uint64_t done = 0;
  const auto read = [](Drive& on, Lba at, MutableBytes into, uint64_t& count) -> task::Task<void> {
    const Result<void> was_read = co_await on.read(at, into);
    EXPECT_TRUE(was_read.has_value());
    ++count;
  };
  for (int i = 0; i < 100; ++i) gate.spawn(read(*drive, slow, memory, done));
  const Result<void> quick = co_await drive->read(Lba(0), memory);
  EXPECT_TRUE(quick.has_value());
  EXPECT_LT(done, 10U);
  co_await gate.close();
  co_await drive->close();
}

TEST(Priority, WithoutAFloorBatchWaitsForTheEnd) {
  const Mix mix = run(8, 8, "depth=4, floor=0");
  EXPECT_LE(mix.batch_done, 20U);
  EXPECT_GT(mix.interactive_done, 9900U);
}

TEST(Priority, BatchAloneHasTheWholeDrive) {
  const Mix mix = run(0, 8, "depth=4, floor=0");
  EXPECT_GT(mix.batch_done, 9900U);
}

TEST(Priority, OneInteractiveRequestAtATimeFindsTheDriveNearlyFree) {
  const Mix alone = run(1, 0, "depth=64, batch_depth=1, floor=0");
  const Mix mixed = run(1, 32, "depth=64, batch_depth=1, floor=0");
  EXPECT_GE(mixed.interactive_done * 2 + 100, alone.interactive_done);
  EXPECT_GT(mixed.batch_done, 1000U);
}

TEST(Priority, WithoutADepthOfItsOwnBatchGetsItsFloorAndNoMore) {
  const Mix mix = run(8, 8, "batch_depth=0, floor=20");
  const auto all = static_cast<double>(mix.batch_done + mix.interactive_done);
  EXPECT_NEAR(static_cast<double>(mix.batch_done) / all, 0.2, 0.01);
  EXPECT_GT(run(0, 8, "batch_depth=0, floor=0").batch_done, 9900U);
}

// Nothing else happens that would remind the service of the waiting request.
SIM_TEST(Priority, BatchGoesOnItsOwnOnceTheDriveIsQuiet) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "priority(mem:size=1M, batch_depth=0, quiet_ms=30)", leaves);
  std::vector<std::byte> memory(4096);
  const MutableBytes piece(memory);
  Result<void> read = co_await drive->read(Lba(0), memory);
  EXPECT_TRUE(read);
  const Time answered = env.now();
  const Request batch{.priority = Priority::kLow, .lba = Lba(0), .blocks = 1};
  read = co_await drive->submit(batch, {&piece, 1});
  EXPECT_TRUE(read);
  EXPECT_GE((env.now() - answered).ns, Duration(30_ms).ns);
  EXPECT_LE((env.now() - answered).ns, Duration(31_ms).ns);
  co_await drive->close();
}

// How long a crest of requests takes that comes while batch waits for half of the drive.
task::Task<void> crest_beside_batch(env::Env& env, std::string options, Duration& took) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(
      env, "priority(limit(mem:size=1M, iops=1000, burst_ms=0), floor=50, depth=4" + options + ")",
      leaves);
  const Time start = env.now();
  const Time end = start + 1_s;
  task::Gate gate;
  uint64_t batch = 0;
  uint64_t interactive = 0;
  for (int i = 0; i < 8; ++i) gate.spawn(read_on(env, *drive, Priority::kLow, end, batch));
  Result<void> slept = co_await task::sleep_until(env, start + 100_ms);
  EXPECT_TRUE(slept);
  const Time crest = env.now();
  task::Gate waiting;
  for (int i = 0; i < 40; ++i) {
    waiting.spawn(read_on(env, *drive, Priority::kNormal, crest + 1_us, interactive));
  }
  co_await waiting.close();
  took = env.now() - crest;
  const uint64_t before = batch;
  slept = co_await task::sleep_until(env, end);
  EXPECT_TRUE(slept);
  EXPECT_GT(batch, before + 300) << "what it was owed, and the quiet drive";
  co_await gate.close();
  co_await drive->close();
}

TEST(Priority, WhatBatchIsOwedIsPaidInTroughsUnlessItIsOld) {
  Duration patient;
  Duration impatient;
  run_in_sim([&](env::Env& env) { return crest_beside_batch(env, ", quiet_ms=50", patient); });
  run_in_sim([&](env::Env& env) { return crest_beside_batch(env, ", quiet_ms=0", impatient); });
  EXPECT_LE(patient.ns, Duration(50_ms).ns) << "40 of its own, and those below before it";
  EXPECT_GE(impatient.ns, Duration(70_ms).ns) << "every other one is batch";
}

SIM_TEST(Priority, AWaitingRequestCanBeCancelled) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "priority(limit(mem:size=1M, iops=10, burst_ms=0), depth=1)", leaves);
  uint64_t count = 0;
  task::Task<void> first = read_on(env, *drive, Priority::kLow, env.now() + 1_ns, count);
  task::Task<void> second = read_on(env, *drive, Priority::kLow, env.now() + 1_ns, count);
  task::Deadline deadline(env, env.now() + 1_ms);
  std::vector<std::byte> memory(4096);
  const Result<void> stopped = co_await drive->read(Lba(0), memory, deadline.token());
  EXPECT_TRUE(!stopped && stopped.error() == Errc::kTimedOut);
  co_await first;
  co_await second;
  EXPECT_GE(count, 2U);
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
