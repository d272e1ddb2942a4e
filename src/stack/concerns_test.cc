// SPDX-License-Identifier: Apache-2.0
// What services say of themselves when something is wrong, and what they do by themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drive/drive.h"
#include "stack/live_stack.h"
#include "task/deadline.h"
#include "testing/sim_test.h"
#include "testing/stack/files.h"
#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

std::optional<Concern> concern(const Drive& drive, std::string_view code) {
  for (const Concern& one : drive.concerns()) {
    if (one.code == code) return one;
  }
  return std::nullopt;
}

std::string codes(const Drive& drive) {
  std::string all;
  for (const Concern& one : drive.concerns()) all += std::string(one.code) + " ";
  return all;
}

task::Task<Result<void>> try_write(Drive& drive, uint64_t block, uint8_t value, size_t count = 1) {
  const std::vector<std::byte> data = blocks_of(value, count);
  Result<void> done = co_await drive.write(Lba(block), data);
  co_return done;
}

// A stack of legs loses the one on disk "b", and gets it back.
struct Redundant {
  const char* stack;
  const char* job;
};
class ConcernOfLegs : public testing::TestWithParam<Redundant> {};

task::Task<void> lose_a_leg(env::Env& env, Redundant how, sim::Medium& leg) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, how.stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await until_settled(env, *drive);
  EXPECT_EQ(codes(*drive), "");
  EXPECT_TRUE(drive->jobs().empty());
  leg.fail_writes();
  co_await write_value(*drive, 0, 5, 32);
  const std::optional<Concern> lost = concern(*drive, "leg_lost");
  CO_ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->health, Health::kDegraded);
  EXPECT_EQ(lost->below, 1u);
  EXPECT_NE(lost->what.find("tried again every"), std::string::npos) << lost->what;
  leg.heal();
  bool was_copied = false;
  while (!drive->concerns().empty()) {
    const std::optional<Concern> copying = concern(*drive, "leg_copying");
    if (copying) {
      was_copied = true;
      EXPECT_EQ(copying->below, 1u);
      const std::vector<Job> jobs = drive->jobs();
      CO_ASSERT_TRUE(jobs.size() == 1);
      EXPECT_EQ(jobs[0].name, how.job);
      EXPECT_LE(jobs[0].done, jobs[0].total);
    }
    const Result<void> slept = co_await task::sleep_for(env, 10_us);
    EXPECT_TRUE(slept);
  }
  EXPECT_TRUE(was_copied);
  EXPECT_TRUE(drive->jobs().empty());
  co_await drive->close();
}

TEST_P(ConcernOfLegs, ALegThatIsLostIsNamedUntilItIsBack) {
  sim::Cluster cluster;
  sim::Medium& leg = cluster.node("host").disk("b");
  run_in_sim(cluster, [&leg](env::Env& env) { return lose_a_leg(env, GetParam(), leg); });
}
INSTANTIATE_TEST_SUITE_P(
    All, ConcernOfLegs,
    testing::Values(Redundant{"mirror(file:a,size=4M, file:b,size=4M, retry_ms=10)", "resync"},
                    Redundant{"parity(file:a,size=4M, file:b,size=4M, file:c,size=4M, retry_ms=10)",
                              "rebuild"}));

task::Task<void> start_without_a_leg(env::Env& env, std::string stack, size_t number) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const std::optional<Concern> lost = concern(*drive, "leg_lost");
  CO_ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->below, number);
  co_await drive->close();
}

class ConcernOfRedundant : public RedundantTest {};

TEST_F(ConcernOfRedundant, AStartWithoutALegNamesIt) {
  EXPECT_EQ(use_stack("mirror(file:a,size=4M, file:b,size=4M)", 3), "");
  run_in_sim(cluster_, [](env::Env& env) {
    return start_without_a_leg(env, "mirror(file:gone, file:a, degraded=yes)", 0);
  });
  EXPECT_EQ(use_stack("parity(file:p,size=4M, file:q,size=4M, file:r,size=4M)", 3), "");
  run_in_sim(cluster_, [](env::Env& env) {
    return start_without_a_leg(env, "parity(file:p, file:gone, file:r, degraded=yes)", 1);
  });
}

task::Task<void> use_up_the_spare(env::Env& env, sim::Medium& leg) {
  SourceLeaves leaves;
  auto drive = co_await must_open(
      env, "mirror(file:a,size=4M, file:b,size=4M, file:c,size=4M, spares=1, retry_ms=10)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(codes(*drive), "");
  leg.fail_writes();
  leg.fail_reads();
  co_await write_value(*drive, 0, 5);
  while (codes(*drive) != "no_spare ") {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
  co_await drive->close();
}

TEST(ConcernOfMirror, SaysThatNoSpareIsLeft) {
  sim::Cluster cluster;
  sim::Medium& leg = cluster.node("host").disk("b");
  run_in_sim(cluster, [&leg](env::Env& env) { return use_up_the_spare(env, leg); });
}

task::Task<void> stick_on_lost_legs(env::Env& env, std::vector<sim::Medium*> lost) {
  SourceLeaves leaves;
  auto drive = co_await must_open(
      env, "parity(file:a,size=4M, file:b,size=4M, file:c,size=4M, retry_ms=10)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  for (sim::Medium* leg : lost) leg->fail_writes();
  task::Deadline deadline(env, env.now() + 1_s);
  const std::vector<std::byte> data = blocks_of(1, 8);
  const Result<void> written = co_await drive->write(Lba(0), data, deadline.token());
  EXPECT_FALSE(written);
  const std::optional<Concern> stuck = concern(*drive, "write_stuck");
  CO_ASSERT_TRUE(stuck.has_value());
  EXPECT_EQ(stuck->health, Health::kFailing);
  for (sim::Medium* leg : lost) leg->heal();
  co_await drive->close();
}

TEST(ConcernOfParity, FailsWhenTooFewLegsAreLeft) {
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host");
  const std::vector<sim::Medium*> lost = {&node.disk("b"), &node.disk("c")};
  run_in_sim(cluster, [&lost](env::Env& env) { return stick_on_lost_legs(env, lost); });
}

// Space runs out: first it is nearly full, then full, and well again after discards.
class ConcernOfSpace : public testing::TestWithParam<const char*> {};

task::Task<void> fill(env::Env& env, std::string stack) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(codes(*drive), "");
  bool was_nearly_full = false;
  uint64_t block = 0;
  for (const size_t count : {8, 1}) {
    for (Result<void> done; done; block += count) {
      std::vector<std::byte> data(count * 4096);
      for (std::byte& one : data) one = static_cast<std::byte>(env.rng().next());
      done = co_await drive->write(Lba(block), data);
      const std::optional<Concern> nearly = concern(*drive, "nearly_full");
      if (nearly) EXPECT_EQ(nearly->health, Health::kDegraded);
      was_nearly_full |= nearly.has_value();
    }
  }
  EXPECT_TRUE(was_nearly_full);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  const std::optional<Concern> full = concern(*drive, "full");
  EXPECT_TRUE(full.has_value()) << codes(*drive);
  if (full) EXPECT_EQ(full->health, Health::kFailing);
  const Result<void> discarded = co_await drive->discard(Lba(0), block);
  EXPECT_TRUE(discarded);
  const Result<void> again = co_await drive->flush();
  EXPECT_TRUE(again);
  EXPECT_EQ(codes(*drive), "");
  co_await drive->close();
}

TEST_P(ConcernOfSpace, NearlyFullThenFullThenWell) {
  run_in_sim([](env::Env& env) { return fill(env, GetParam()); });
}
INSTANTIATE_TEST_SUITE_P(All, ConcernOfSpace,
                         testing::Values("thin(mem:size=4M, virtual=64M, warn=50)",
                                         "compress(mem:size=4M, virtual=64M)",
                                         "dedup(mem:size=4M, virtual=64M)"));

SIM_TEST(ConcernOfSnapshot, IsFullWhenVersionsHaveTaken) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "snapshot(mem:size=4M, reserve=20)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  for (uint64_t block = 0; block + 8 <= drive->geometry().blocks; block += 8) {
    co_await write_value(*drive, block, 1, 8);
  }
  EXPECT_EQ(codes(*drive), "");
  const auto taken = co_await drive->tell({"take"});
  EXPECT_TRUE(taken) << taken.error();
  Result<void> done;
  for (uint64_t block = 0; done && block + 8 <= drive->geometry().blocks; block += 8) {
    done = co_await try_write(*drive, block, 2, 8);
  }
  EXPECT_FALSE(done);
  EXPECT_TRUE(concern(*drive, "full").has_value()) << codes(*drive);
  co_await drive->close();
}

task::Task<void> read_damage(env::Env& env, sim::Medium& disk) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "checksum(file:d,size=4M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await write_value(*drive, 0, 7, 8);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  EXPECT_EQ(codes(*drive), "");
  // The first block of data, wherever it lies.
  const std::vector<std::byte> all = contents_of(disk);
  const std::vector<std::byte> block = blocks_of(7, 1);
  const auto at = std::ranges::search(all, block).begin() - all.begin();
  disk.corrupt({.offset = static_cast<uint64_t>(at), .length = 4096});
  EXPECT_EQ(co_await read_value(*drive, 0), -1);
  const std::optional<Concern> corrupt = concern(*drive, "blocks_corrupt");
  CO_ASSERT_TRUE(corrupt.has_value());
  EXPECT_EQ(corrupt->health, Health::kFailing);
  co_await drive->close();
}

TEST(ConcernOfChecksum, TellsBlocksThatCannotBeMended) {
  sim::Cluster cluster;
  sim::Medium& disk = cluster.node("host").disk("d");
  run_in_sim(cluster, [&disk](env::Env& env) { return read_damage(env, disk); });
}

task::Task<void> stop_a_rotation(env::Env& env, sim::Medium& disk) {
  LeavesWithFiles leaves({{"a.key", testing_key(1)}, {"b.key", testing_key(2)}});
  auto drive = co_await must_open(env, "encrypt(file:d,size=4M, key=a.key, rate=1M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await write_value(*drive, 0, 7, 8);
  EXPECT_TRUE(drive->jobs().empty());
  const auto told = co_await drive->tell({"rotate", "b.key"});
  CO_ASSERT_TRUE(told.has_value());
  std::vector<Job> jobs = drive->jobs();
  CO_ASSERT_TRUE(jobs.size() == 1);
  EXPECT_EQ(jobs[0].name, "rotation");
  disk.fail_writes();
  while (!concern(*drive, "rotation_stopped")) {
    const Result<void> slept = co_await task::sleep_for(env, 10_ms);
    EXPECT_TRUE(slept);
  }
  disk.heal();
  while (!drive->jobs().empty()) {
    const Result<void> slept = co_await task::sleep_for(env, 100_ms);
    EXPECT_TRUE(slept);
  }
  EXPECT_EQ(codes(*drive), "");
  co_await drive->close();
}

TEST(ConcernOfEncrypt, TellsARotationThatStopped) {
  sim::Cluster cluster;
  sim::Medium& disk = cluster.node("host").disk("d");
  run_in_sim(cluster, [&disk](env::Env& env) { return stop_a_rotation(env, disk); });
}

SIM_TEST(ConcernOfSpillover, SaysWhatLiesElsewhere) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "spillover(file:here,size=1M, file:there,size=4M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_EQ(codes(*drive), "");
  for (uint64_t block = 0; block < 512; block += 8) co_await write_value(*drive, block, 1, 8);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  drive = co_await must_open(env, "spillover(file:here, file:gone)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const std::optional<Concern> lost = concern(*drive, "elsewhere_lost");
  CO_ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->health, Health::kFailing);
  EXPECT_EQ(lost->below, 1u);
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
