// SPDX-License-Identifier: Apache-2.0
// The block-copy example on disks that stall, fail and lose power, seed by seed. Checked: a copy
// that was reported survives the loss of power right after; a copy that failed says so; after
// recovery the copy succeeds; the same seed gives the same run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "conformance/seeds.h"
#include "conformance/verbs.h"
#include "conformance/watchdog.h"
#include "env/disk.h"
#include "env/env.h"
#include "examples/block_copy.h"
#include "sim/cluster.h"
#include "sim/options.h"
#include "task/deadline.h"
#include "task/task.h"

namespace cairn::examples {
namespace {

using conformance::current_test;
using conformance::fill_pattern;
using conformance::seeds;
using conformance::Watchdog;
using env::Disk;
using sim::Cluster;
using sim::ClusterOptions;
using task::Task;

constexpr uint64_t kSize = 1_MiB;

struct Progress {
  uint64_t attempts = 0;
  uint64_t failures = 0;  // copies that said they failed
  bool is_copied = false;
};

// Copies again and again until it works. Started anew after each crash.
Task<void> run_copy(env::Env& env, Progress& progress) {
  const task::CancelToken stop = env.stop_token();
  const Result<std::unique_ptr<Disk>> from = env.open_disk({.path = "from", .read_only = true});
  const Result<std::unique_ptr<Disk>> to =
      env.open_disk({.path = "to", .size = kSize, .create = true});
  if (!from || !to) co_return;
  while (!progress.is_copied && !stop.requested()) {
    ++progress.attempts;
    const BlockCopyOptions options = {.piece_size = 32_KiB, .in_flight_max = 8};
    const Result<uint64_t> copied = co_await copy_blocks(env, **from, **to, options, stop);
    progress.is_copied = copied.has_value();
    if (copied) break;
    ++progress.failures;
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, 10_ms, stop);
  }
}

ClusterOptions draw_options(uint64_t seed) {
  Rng rng(seed);
  ClusterOptions options;
  options.seed = seed;
  options.disk.faults = sim::DiskFaults::rough();
  options.disk.faults.read_error = rng.uniform() * 0.1;
  options.disk.faults.write_error = rng.uniform() * 0.1;
  options.disk.faults.flush_error = rng.chance(0.5) ? rng.uniform() * 0.5 : 0;
  options.disk.faults.stall_max = 50_ms;
  return options;
}

// What a read of the whole disk would give.
std::vector<std::byte> contents(Cluster& cluster, const char* disk) {
  std::vector<std::byte> bytes(kSize);
  cluster.node("host").disk(disk).peek(0, bytes);
  return bytes;
}

struct Outcome {
  uint64_t hash = 0;
  uint64_t crashes = 0;
  uint64_t failures = 0;
};

Outcome run_copies(uint64_t seed) {
  Outcome outcome;
  Progress progress;
  Rng rng(mix64(seed));
  std::vector<std::byte> original(kSize);
  fill_pattern(original, seed);
  Cluster cluster(draw_options(seed));
  sim::Node& host = cluster.node("host");
  host.disk("from").create(kSize);
  host.disk("from").poke(0, original);
  host.start([&progress](env::Env& env) { return run_copy(env, progress); });

  const auto is_copied = [&] { return progress.is_copied; };
  for (int i = 0; i < 5 && !progress.is_copied; ++i) {
    cluster.run_until(is_copied, Duration{static_cast<int64_t>(rng.below(10'000'000))});
    if (!host.is_running()) break;
    host.crash();
    ++outcome.crashes;
    if (!progress.is_copied) host.restart();
  }
  if (!progress.is_copied) {
    cluster.recover();
    EXPECT_TRUE(cluster.run_until(is_copied, 60_s)) << "no progress after recovery";
  }
  if (host.is_running()) host.crash();
  EXPECT_EQ(contents(cluster, "to"), original) << "a copy that was reported is durable";
  EXPECT_EQ(contents(cluster, "from"), original) << "the source stays as it was";
  outcome.failures = progress.failures;
  outcome.hash = cluster.trace_hash();
  if (testing::Test::HasFailure()) std::fprintf(stderr, "%s\n", cluster.report().c_str());
  return outcome;
}

TEST(BlockCopyOnBadDisks, WhatWasReportedIsThereAfterPowerLoss) {
  const Watchdog watchdog(current_test());
  Outcome sum;
  for (const uint64_t seed : seeds(200)) {
    const Outcome outcome = run_copies(seed);
    ASSERT_FALSE(testing::Test::HasFailure()) << "repeat with CAIRN_SEED=" << seed;
    sum.crashes += outcome.crashes;
    sum.failures += outcome.failures;
  }
  if (std::getenv("CAIRN_SEED") == nullptr) {
    EXPECT_GT(sum.crashes, 100u) << "the trouble is real";
    EXPECT_GT(sum.failures, 100u);
  }
}

TEST(BlockCopyOnBadDisks, TheSameSeedIsTheSameRun) {
  const Watchdog watchdog(current_test());
  for (const uint64_t seed : seeds(10)) {
    EXPECT_EQ(run_copies(seed).hash, run_copies(seed).hash) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn::examples
