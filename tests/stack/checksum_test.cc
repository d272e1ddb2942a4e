// SPDX-License-Identifier: Apache-2.0
// Checksums above mirrors one of whose legs rots, under load and through power losses.
#include "service/integrity/checksum.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "task/deadline.h"
#include "testing/stack/stack_load.h"
#include "testing/stack/stacks.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

constexpr uint64_t kMirrorHead = 64_KiB;
constexpr uint64_t kDataOffset = kMirrorHead + 64_KiB;
constexpr size_t kBlock = 4096;

std::vector<std::byte> data_of(sim::Medium& disk) {
  std::vector<std::byte> bytes(disk.size() - kMirrorHead);
  disk.peek(kMirrorHead, bytes);
  return bytes;
}

// One leg gets old, swapped and flipped blocks; reads see none of it, and a scrub mends all.
task::Task<void> rot_and_mend(env::Env& env, sim::Cluster& cluster, int bad_leg) {
  drive::SourceLeaves leaves;
  auto drive =
      co_await drive::must_open(env, "checksum(mirror(file:d0,size=2M, file:d1,size=2M))", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  sim::Medium& bad = cluster.node("host").disk(fmt::format("d{}", bad_leg));
  std::vector<std::vector<std::byte>> written;
  for (uint8_t i = 0; i < 60; ++i) {
    written.push_back(drive::blocks_of(i + 1, 1));
    const Result<void> done = co_await drive->write(Lba(i), written.back());
    EXPECT_TRUE(done);
  }
  // Let the mirror forget its marks: its legs are equal, as far as it knows.
  const Result<void> slept = co_await task::sleep_for(env, 5_s);
  EXPECT_TRUE(slept);
  std::vector<std::byte> block(kBlock);
  for (uint64_t i = 0; i < 10; ++i) bad.corrupt({.offset = kDataOffset + i * kBlock, .length = 99});
  for (uint64_t i = 10; i < 20; ++i) {  // misplaced
    bad.peek(kDataOffset + (i + 20) * kBlock, block);
    bad.poke(kDataOffset + i * kBlock, block);
  }
  const std::vector<std::byte> zeroes(kBlock);
  for (uint64_t i = 20; i < 30; ++i) bad.poke(kDataOffset + i * kBlock, zeroes);  // lost
  for (int round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < 15; ++i) {
      const Result<void> done = co_await drive->read(Lba(i), block);
      EXPECT_TRUE(done) << i;
      EXPECT_EQ(block, written[i]) << i;
    }
  }
  const auto told = co_await drive->tell({"scrub"});
  EXPECT_TRUE(told);
  while (fact(*drive, "scrubbing") == 1) {
    const Result<void> waited = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(waited);
  }
  EXPECT_EQ(fact(*drive, "blocks_repaired"), 30U);
  EXPECT_EQ(fact(*drive, "blocks_corrupt"), 0U);
  co_await drive->close();
}

TEST(ChecksumOverMirror, ALegThatRotsIsMendedToTheLastByte) {
  for (const int leg : {0, 1}) {
    sim::Cluster cluster;
    drive::run_in_sim(cluster, [&](env::Env& env) { return rot_and_mend(env, cluster, leg); });
    EXPECT_EQ(data_of(cluster.node("host").disk("d0")), data_of(cluster.node("host").disk("d1")));
  }
}

TEST(ChecksumOverMirror, RotUnderLoadIsNeverSeen) {
  for (const uint64_t seed : sim::seeds_to_run(2)) {
    StackLoad load({.stack = "checksum(mirror(file:d0,size=2M, file:d1,size=2M))",
                    .requests = UINT64_MAX,
                    .cancel_share = 0});
    drive::Drive* drive = nullptr;
    load.on_open = [&](drive::Drive* opened) { drive = opened; };
    Rng rng(seed);
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&load](env::Env& env) { return load.live(env); });
    ASSERT_TRUE(cluster.run_until([&] { return drive != nullptr; }, 100_s));
    for (int i = 0; i < 60 && load.failure().empty(); ++i) {
      cluster.run_for(Duration{static_cast<int64_t>(rng.between(1, 5'000)) * 1'000});
      const uint64_t block = rng.below(drive->geometry().blocks);
      node.disk("d1").corrupt({.offset = kDataOffset + block * kBlock, .length = kBlock});
    }
    EXPECT_EQ(load.failure(), "") << cluster.report();
    EXPECT_GT(load.done(), 300U);
    node.stop();
    EXPECT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 100_s));
    EXPECT_EQ(load.failure(), "") << cluster.report();
  }
}

task::Task<void> expect_all_are_summed(env::Env& env, sim::Cluster& cluster) {
  drive::SourceLeaves leaves;
  auto opened = co_await drive::must_open(env, "checksum(file:d0)", leaves);
  CO_ASSERT_TRUE(opened != nullptr);
  std::vector<std::byte> block(kBlock);
  for (uint64_t i = 0; i < opened->geometry().blocks; i += 7) {
    cluster.node("host").disk("d0").corrupt({.offset = 64_KiB + i * kBlock, .length = kBlock});
    const Result<void> done = co_await opened->read(Lba(i), block);
    EXPECT_FALSE(done) << i;
  }
  co_await opened->close();
}

// What a crash leaves is settled at once: then a flipped bit is found as ever.
TEST(ChecksumAfterACrash, BlocksAreGuardedAgain) {
  for (const uint64_t seed : sim::seeds_to_run(6)) {
    StackLoad load({.stack = "checksum(file:d0,size=2M)", .requests = UINT64_MAX});
    drive::Drive* drive = nullptr;
    load.on_open = [&](drive::Drive* opened) { drive = opened; };
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&load](env::Env& env) { return load.live(env); });
    cluster.run_for(100_ms);
    node.crash();
    drive = nullptr;
    load.crashed();
    node.restart();
    load.stop_cancelling();
    const auto is_settled = [&] {
      return drive != nullptr && fact(*drive, "regions_unsettled") == 0;
    };
    ASSERT_TRUE(cluster.run_until(is_settled, 100_s)) << load.failure();
    node.stop();
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 100_s));
    EXPECT_EQ(load.failure(), "") << cluster.report();
    drive::run_in_sim(cluster, [&](env::Env& env) { return expect_all_are_summed(env, cluster); });
  }
}

}  // namespace
}  // namespace cairn::stack
