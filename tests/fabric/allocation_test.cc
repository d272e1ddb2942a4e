// SPDX-License-Identifier: Apache-2.0
// In a steady state neither host nor box takes anything from the heap.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/alloc_count.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "task/when_all.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

using fabric::RemoteDrive;

constexpr int kWarmUp = 2'000;
constexpr int kRounds = 10'000;
constexpr size_t kDepth = 8;

// One core, because a thread counts its own. Calm: with faults drawn at random, a pool of the
// simulator may reach a new height at any time.
template <class World>
class FabricAllocation : public Conformance<World> {
  conformance::Setting setting() const override { return {.cores = 1, .calm = true}; }
};
TYPED_TEST_SUITE(FabricAllocation, Worlds, WorldNames);

// Writes and reads a block of its own, again and again.
Task<void> work(RemoteDrive& drive, Lba lba, MutableBytes block, int rounds, int& failures) {
  for (int i = 0; i < rounds; ++i) {
    const Result<void> written = co_await drive.write(lba, block);
    const Result<void> got = co_await drive.read(lba, block);
    if (!written || !got) ++failures;
  }
}

Task<int> work_at_depth(RemoteDrive& drive, std::vector<std::byte>& memory, int rounds) {
  int failures = 0;
  std::vector<Task<void>> workers;
  const size_t size = memory.size() / kDepth;
  for (size_t i = 0; i < kDepth; ++i) {
    const MutableBytes blocks = MutableBytes(memory).subspan(i * size, size);
    workers.push_back(work(drive, Lba(i * size / kBlock), blocks, rounds, failures));
  }
  co_await task::when_all(std::move(workers));
  co_return failures;
}

Task<void> expect_none(env::Env& env, Scene& scene, fabric::HostOptions options,
                       size_t size = kBlock) {
  Box box(env);
  co_await box.open(scene.any_port());
  const fabric::Uri uri{.paths = {box.address}, .nqn = kNqn, .nsid = 1, .options = options};
  Result<std::unique_ptr<RemoteDrive>> opened = co_await RemoteDrive::open(env, uri);
  const std::unique_ptr<RemoteDrive> drive = must(std::move(opened));
  std::vector<std::byte> memory(kDepth * size);
  const int warm = co_await work_at_depth(*drive, memory, kWarmUp / static_cast<int>(kDepth));
  EXPECT_EQ(warm, 0);
  int failures = 0;
  const uint64_t before = bench::allocation_count();
  EXPECT_EQ(before > 0, bench::counts_allocations());
  co_await work(*drive, Lba(0), MutableBytes(memory).first(size), kRounds, failures);
  EXPECT_EQ(bench::allocation_count() - before, 0u) << "in " << kRounds << " reads and writes";
  // Starting the workers takes a little; the commands themselves nothing.
  const uint64_t deep = bench::allocation_count();
  const int more = co_await work_at_depth(*drive, memory, kRounds / static_cast<int>(kDepth));
  EXPECT_LE(bench::allocation_count() - deep, 2 * kDepth);
  EXPECT_EQ(failures + more, 0);
  co_await drive->close();
  co_await box.close();
}

WORLD_TEST(FabricAllocation, ReadsAndWritesTakeNothing) {
  co_await expect_none(env, scene, {.host_nqn = "nqn.2026-11.io.cairn:host"});
}

WORLD_TEST(FabricAllocation, NorDoDigests) {
  co_await expect_none(
      env, scene,
      {.host_nqn = "nqn.2026-11.io.cairn:host", .header_digest = true, .data_digest = true});
}

WORLD_TEST(FabricAllocation, NorDoTransfersByR2t) {
  co_await expect_none(env, scene, {.host_nqn = "nqn.2026-11.io.cairn:host"}, 4 * kBlock);
}

}  // namespace
}  // namespace cairn::target_tests
