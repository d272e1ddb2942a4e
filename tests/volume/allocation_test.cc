// SPDX-License-Identifier: Apache-2.0
// In a steady state a volume's reads and writes take nothing from the heap, however many replicas
// it has.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/alloc_count.h"
#include "bench/volume/pool_scene.h"
#include "share/scheduler.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/sim_test.h"

namespace cairn::volume {
namespace {

using bench::PoolScene;
using bench::SpecMedia;
using task::Task;

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kVolume = 16_MiB;
constexpr uint64_t kDepth = 8;
constexpr int kWarmUp = 4'000;
constexpr int kRounds = 4'000;

// Writes and reads blocks of its own in several extents, again and again.
Task<void> work(drive::Drive& drive, uint64_t first, MutableBytes block, int rounds,
                int& failures) {
  for (int i = 0; i < rounds; ++i) {
    const Lba lba{(first + static_cast<uint64_t>(i) * 97 * kDepth) % (kVolume / kBlock)};
    const Result<void> written = co_await drive.write(lba, block);
    const Result<void> got = co_await drive.read(lba, block);
    if (!written || !got) ++failures;
  }
}

Task<int> work_at_depth(drive::Drive& drive, std::vector<std::byte>& memory, int rounds) {
  int failures = 0;
  std::vector<Task<void>> workers;
  workers.reserve(kDepth);
  for (uint64_t i = 0; i < kDepth; ++i) {
    const MutableBytes block = MutableBytes(memory).subspan(i * kBlock, kBlock);
    workers.push_back(work(drive, i, block, rounds, failures));
  }
  co_await task::when_all(std::move(workers));
  co_return failures;
}

Task<void> expect_none(env::Env& env, drive::Spec spec, uint32_t replicas,
                       bool is_steered = false) {
  Result<std::unique_ptr<SpecMedia>> media = SpecMedia::make(env, 3, spec);
  CO_ASSERT_TRUE(media.has_value());
  Result<std::unique_ptr<PoolScene>> scene = co_await PoolScene::make(env, std::move(*media));
  CO_ASSERT_TRUE(scene.has_value());
  const Result<void> created = co_await (*scene)->create("v", kVolume, replicas);
  CO_ASSERT_TRUE(created.has_value());
  // What it does by itself from time to time may allocate: marks that go, a lease that is renewed.
  const VolumeOptions quiet{.sweep = 3600_s};
  Result<std::unique_ptr<VolumeDrive>> drive = fail(Errc::kClosed, "");
  if (is_steered) {
    drive = co_await (*scene)->open_steered("v", quiet);
  } else {
    drive = co_await (*scene)->open("v", quiet);
  }
  CO_ASSERT_TRUE(drive.has_value());
  std::vector<std::byte> memory(kDepth * kBlock);
  // Until it is steered as it will be: it joined a market, and that has learned.
  for (int i = 0; is_steered && i < 10; ++i) {
    const int joining = co_await work_at_depth(**drive, memory, 10);
    EXPECT_EQ(joining, 0);
    const Result<void> slept = co_await task::sleep_for(env, 100_ms);
    CO_ASSERT_TRUE(slept.has_value());
  }
  EXPECT_EQ(is_steered, (*scene)->steering() != nullptr && (*scene)->steering()->is_joined());
  const int warm = co_await work_at_depth(**drive, memory, kWarmUp);
  EXPECT_EQ(warm, 0);
  int failures = 0;
  const uint64_t before = bench::allocation_count();
  EXPECT_EQ(before > 0, bench::counts_allocations());
  co_await work(**drive, 0, MutableBytes(memory).first(kBlock), kRounds, failures);
  EXPECT_EQ(bench::allocation_count() - before, 0U) << "in " << kRounds << " reads and writes";
  // Starting the workers takes a little; the requests themselves nothing.
  const uint64_t deep = bench::allocation_count();
  const int more = co_await work_at_depth(**drive, memory, kRounds);
  EXPECT_LE(bench::allocation_count() - deep, 2 * kDepth);
  EXPECT_EQ(failures + more, 0);
  co_await (*drive)->close();
  co_await (*scene)->close();
}

drive::Spec memory_spec() { return {.kind = drive::Spec::Kind::kMemory, .size = 64_MiB}; }

SIM_TEST(VolumeAllocation, ReadsAndWritesTakeNothing) {
  co_await expect_none(env, memory_spec(), 1);
}

SIM_TEST(VolumeAllocation, NorDoThoseOfThreeReplicas) {
  co_await expect_none(env, memory_spec(), 3);
}

SIM_TEST(VolumeAllocation, NorDoThoseThatAreSteered) {
  co_await expect_none(env, memory_spec(), 1, true);
}

TEST(VolumeAllocation, NorDoRequestsThatWaitOnceAsManyWaitedBefore) {
  share::Scheduler scheduler;
  uint64_t before = 0;
  for (uint64_t round = 0; round < 200; ++round) {
    if (round == 100) before = bench::allocation_count();
    for (uint64_t i = 0; i < 64; ++i) {
      const share::Pending next{.stream = share::StreamId(static_cast<uint32_t>(i % 9)),
                                .tag = i,
                                .drive = share::DriveId(static_cast<uint32_t>(i % 3)),
                                .bytes = 4096};
      const Result<void> queued =
          scheduler.enqueue(next, Time{static_cast<int64_t>(round * 64 + i)});
      ASSERT_TRUE(queued.has_value());
    }
    while (scheduler.size() > round % 7) scheduler.dequeue([](const auto&) { return true; });
  }
  EXPECT_EQ(bench::allocation_count() - before, 0U);
}

}  // namespace
}  // namespace cairn::volume
