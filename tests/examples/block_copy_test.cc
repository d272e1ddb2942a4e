// SPDX-License-Identifier: Apache-2.0
// The block-copy example on every world, without trouble; block_copy_sim_test.cc has the trouble.
#include "examples/block_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/units.h"
#include "env/disk.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Disk;
using examples::BlockCopyOptions;
using examples::copy_blocks;
using examples::same_blocks;
using task::CancelSource;
using task::Task;

WORLD_TEST_SUITE(BlockCopy);

// Two disks, the first with known contents.
struct Disks {
  std::unique_ptr<Disk> from;
  std::unique_ptr<Disk> to;
};
Task<Disks> two_disks(env::Env& env, Scene& scene, uint64_t size, uint64_t target_size) {
  Disks disks;
  disks.from = must(env.open_disk(scene.disk("from", size)));
  disks.to = must(env.open_disk(scene.disk("to", target_size)));
  const Buffer buffer = blank(env, 64_KiB);
  for (uint64_t offset = 0; offset < size; offset += buffer.size()) {
    const size_t piece = std::min<uint64_t>(buffer.size(), size - offset);
    fill_pattern(buffer.first(piece), 1, offset);
    const Result<void> written = co_await disks.from->write(offset, buffer.first(piece));
    EXPECT_EQ(outcome(written), "ok");
  }
  co_return std::move(disks);
}

WORLD_TEST(BlockCopy, CopiesEveryBlock) {
  const Disks disks = co_await two_disks(env, scene, 2_MiB + 12_KiB, 3_MiB);
  const Result<bool> before = co_await same_blocks(env, *disks.from, *disks.to, {}, {});
  EXPECT_FALSE(must(before));
  const Result<uint64_t> copied = co_await copy_blocks(env, *disks.from, *disks.to, {}, {});
  EXPECT_EQ(must(copied), 2_MiB + 12_KiB);
  const Result<bool> after = co_await same_blocks(env, *disks.from, *disks.to, {}, {});
  EXPECT_TRUE(must(after));
}

WORLD_TEST(BlockCopy, AnyNumberInFlightGivesTheSame) {
  for (const uint32_t in_flight : {1, 2, 7, 64}) {
    const Disks disks = co_await two_disks(env, scene, 1_MiB, 1_MiB);
    const BlockCopyOptions options = {.piece_size = 8_KiB, .in_flight_max = in_flight};
    const Result<void> cleared = co_await disks.to->write_zeroes(0, 1_MiB);
    EXPECT_EQ(outcome(cleared), "ok");
    const Result<uint64_t> copied = co_await copy_blocks(env, *disks.from, *disks.to, options, {});
    EXPECT_EQ(must(copied), 1_MiB);
    const Result<bool> same = co_await same_blocks(env, *disks.from, *disks.to, options, {});
    EXPECT_TRUE(must(same)) << in_flight;
  }
}

WORLD_TEST(BlockCopy, StoppedAtAnyMomentLeavesNothingInFlight) {
  const Disks disks = co_await two_disks(env, scene, 2_MiB, 2_MiB);
  const BlockCopyOptions options = {.piece_size = 16_KiB, .in_flight_max = 8};
  for (int i = 0; i < 20; ++i) {
    CancelSource stop;
    Task<Result<uint64_t>> copying =
        copy_blocks(env, *disks.from, *disks.to, options, stop.token());
    co_await hesitate(env);
    stop.request();
    const Result<uint64_t> copied = co_await copying;
    EXPECT_TRUE(copied || outcome(copied) == "cancelled") << outcome(copied);
  }
  const Result<uint64_t> copied = co_await copy_blocks(env, *disks.from, *disks.to, options, {});
  EXPECT_EQ(must(copied), 2_MiB) << "copying again makes it whole";
  const Result<bool> same = co_await same_blocks(env, *disks.from, *disks.to, options, {});
  EXPECT_TRUE(must(same));
}

WORLD_TEST(BlockCopy, TellsOfADiskThatCannotBeRead) {
  const Disks disks = co_await two_disks(env, scene, 1_MiB, 1_MiB);
  scene.break_reads(scene.disk("from", 1_MiB));
  const Result<uint64_t> copied = co_await copy_blocks(env, *disks.from, *disks.to, {}, {});
  EXPECT_EQ(outcome(copied), "io");
}

WORLD_TEST(BlockCopy, RefusesWhatCannotWork) {
  const Disks disks = co_await two_disks(env, scene, 1_MiB, 512_KiB);
  const Result<uint64_t> small = co_await copy_blocks(env, *disks.from, *disks.to, {}, {});
  EXPECT_EQ(outcome(small), "invalid");
  const BlockCopyOptions odd = {.piece_size = 1000};
  const Result<uint64_t> misaligned = co_await copy_blocks(env, *disks.to, *disks.from, odd, {});
  EXPECT_EQ(outcome(misaligned), "invalid");
  std::vector<Buffer> held;
  Result<Buffer> next = env.buffers().allocate(env.buffers().size_max());
  while (next) {
    held.push_back(std::move(*next));
    next = env.buffers().allocate(env.buffers().size_max());
  }
  const BlockCopyOptions large = {.piece_size = static_cast<uint32_t>(env.buffers().size_max())};
  const Result<uint64_t> limit = co_await copy_blocks(env, *disks.to, *disks.from, large, {});
  EXPECT_EQ(outcome(limit), "limit");
}

}  // namespace
}  // namespace cairn::conformance
