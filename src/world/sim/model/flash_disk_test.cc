// SPDX-License-Identifier: Apache-2.0
// Disks of the simulated world that take as long as a modelled SSD.
#include "world/sim/model/flash_disk.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/buffer.h"
#include "env/disk.h"
#include "env/env.h"
#include "model/flash/workload.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::sim {
namespace {

using env::Env;
using task::Task;

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kSize = 256 * kBlock;

flash::Parameters small_drive() {
  flash::Parameters p;
  p.channels = 2;
  p.chips_per_channel = 1;
  p.dies_per_chip = 1;
  p.planes_per_die = 1;
  p.blocks_per_plane = 32;
  p.pages_per_block = 16;
  p.page_bytes = 4096;
  p.over_provisioning = 0.25;
  p.streams[0].cache = flash::CacheMode::kOff;
  return p;
}

// A request, and how long it took; -1 when it failed.
Task<void> one(Env& env, env::Disk& disk, uint64_t block, bool is_read, Duration& took) {
  Buffer buffer = std::move(*env.buffers().allocate(kBlock));
  const Time start = env.now();
  const Result<void> done = is_read ? co_await disk.read(block * kBlock, buffer.bytes())
                                    : co_await disk.write(block * kBlock, buffer.bytes());
  took = done ? env.now() - start : Duration{-1};
}

constexpr size_t kTogether = 24;

// All are sent at once.
Task<void> send_together(Env& env, env::Disk& disk, std::vector<Duration>& took,
                         std::vector<flash::TimedRequest>& requests) {
  std::vector<Task<void>> all;
  for (size_t i = 0; i < kTogether; ++i) {
    const bool is_read = i % 3 == 0;
    all.push_back(one(env, disk, 3 * i, is_read, took[i]));
    requests.push_back({env.now().ns,
                        {.op = is_read ? flash::Op::kRead : flash::Op::kWrite,
                         .lba = 3 * i * kBlock / flash::kSectorBytes,
                         .sectors = kBlock / flash::kSectorBytes,
                         .cookie = i}});
  }
  co_await task::when_all(std::move(all));
}

Task<void> read_counting(Env& env, env::Disk& disk, uint64_t& rounds) {
  Duration took;
  for (uint64_t i = 0; i < 200; ++i) {
    co_await one(env, disk, i, false, took);
    ++rounds;
  }
}

class FlashDiskTest : public testing::Test {
 public:
  FlashDiskTest() { options_.disk.model = flash_disks(small_drive()); }
  struct Scene {
    Env& env;
    env::Disk& disk;
  };
  // Runs `body` on a disk of node a to its end.
  using Body = std::function<Task<void>(Env&, env::Disk&)>;
  void run(Body body) {
    Cluster cluster(options_);
    Node& node = cluster.node("a");
    node.start([&](Env& env) { return open_and_run(env, body); });
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 100_s));
    hash_ = cluster.trace_hash();
  }
  static Task<void> open_and_run(Env& env, const Body& body) {
    auto disk = env.open_disk({.path = "d", .size = kSize, .create = true});
    EXPECT_TRUE(disk.has_value());
    if (disk) co_await body(env, **disk);
  }

  ClusterOptions options_;
  uint64_t hash_ = 0;
};

TEST_F(FlashDiskTest, RequestsTakeWhatTheModelAloneSays) {
  std::vector<Duration> took(kTogether);
  std::vector<flash::TimedRequest> requests;
  run([&](Env& env, env::Disk& disk) { return send_together(env, disk, took, requests); });
  flash::FlashModel alone(small_drive());
  std::vector<Duration> expected(kTogether);
  flash::run_open_loop(alone, requests, [&](const flash::Completion& c) {
    expected[c.cookie] = Duration{c.done - c.arrival};
  });
  EXPECT_EQ(took, expected);
}

TEST_F(FlashDiskTest, SameSeedSameRun) {
  const auto body = [](Env& env, env::Disk& disk) -> Task<void> {
    Duration took;
    for (uint64_t i = 0; i < 50; ++i) co_await one(env, disk, i * 5 % 200, i % 3 == 0, took);
  };
  run(body);
  const uint64_t first = hash_;
  run(body);
  EXPECT_EQ(hash_, first);
}

SIM_TEST_F(FlashDiskTest, CancelledRequestLeavesTheOthersAlone) {
  for (uint64_t i = 0; i < 40; ++i) {
    Buffer buffer = std::move(*env.buffers().allocate(kBlock));
    task::Deadline soon(env, env.now() + 10_us);
    (void)co_await disk.write(i * kBlock, buffer.bytes(), {}, soon.token());
    Duration took;
    co_await one(env, disk, i, true, took);
    EXPECT_GT(took, Duration{0});
  }
}

TEST_F(FlashDiskTest, CrashInMidFlightIsFollowedByAUsableDisk) {
  Cluster cluster(options_);
  Node& node = cluster.node("a");
  uint64_t rounds = 0;
  const Body body = [&](Env& env, env::Disk& disk) { return read_counting(env, disk, rounds); };
  node.start([&](Env& env) { return open_and_run(env, body); });
  for (int i = 0; i < 5; ++i) {
    cluster.run_for(3_ms);
    node.crash();
    node.restart();
  }
  rounds = 0;
  EXPECT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 100_s));
  EXPECT_EQ(rounds, 200U);
}

}  // namespace
}  // namespace cairn::sim
