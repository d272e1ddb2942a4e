// SPDX-License-Identifier: Apache-2.0
// Blocks in memory that two real cores read and write at once: each is whole, whoever reads it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "drive/memory_drive.h"
#include "env/call.h"
#include "task/when_all.h"
#include "testing/worlds/suite.h"

namespace cairn::conformance {
namespace {

constexpr uint32_t kBlockSize = 65536;
constexpr int kRounds = 3000;

template <class World>
class MemoryOnTwoCores : public Conformance<World> {
  Setting setting() const override { return {.cores = 2}; }
};
TYPED_TEST_SUITE(MemoryOnTwoCores, Worlds, WorldNames);

// Blocks of one value each, and now and then a block of zeroes.
task::Task<void> write_values(env::Env& env, drive::MemoryMedium& medium) {
  drive::MemoryDrive drive(env, medium);
  std::vector<std::byte> block(kBlockSize);
  for (int i = 0; i < kRounds; ++i) {
    std::ranges::fill(block, static_cast<std::byte>(i));
    Result<void> done = co_await drive.write(Lba(1), block);
    if (done && i % 16 == 0) done = co_await drive.discard(Lba(0), 2);
    EXPECT_TRUE(done.has_value());
  }
  co_await drive.close();
}

// How many blocks were of two values, in memory that is cut inside the block.
task::Task<int> read_values(env::Env& env, drive::MemoryMedium& medium) {
  drive::MemoryDrive drive(env, medium);
  std::vector<std::byte> block(kBlockSize);
  const MutableBytes pieces[] = {MutableBytes(block).first(kBlockSize / 3),
                                 MutableBytes(block).subspan(kBlockSize / 3)};
  int torn = 0;
  for (int i = 0; i < kRounds; ++i) {
    const Result<void> done = co_await drive.submit({.lba = Lba(1), .blocks = 1}, pieces);
    EXPECT_TRUE(done.has_value());
    torn += std::ranges::count(block, block[0]) == kBlockSize ? 0 : 1;
  }
  EXPECT_TRUE(drive.lend(Lba(1), 1).empty()) << "whoever borrows would see a block half written";
  co_await drive.close();
  co_return torn;
}

task::Task<void> write_there(env::Env& env, drive::MemoryMedium& medium) {
  co_await env::call_on(env, CoreId(1),
                        [&medium](env::Env& there) { return write_values(there, medium); });
}

WORLD_TEST(MemoryOnTwoCores, ReadsBlocksWhole) {
  Result<std::unique_ptr<drive::MemoryMedium>> medium =
      drive::MemoryMedium::make(env, 4 * kBlockSize, kBlockSize);
  EXPECT_TRUE(medium.has_value());
  if (!medium) co_return;
  task::Task<void> writing = write_there(env, **medium);
  const int torn = co_await read_values(env, **medium);
  EXPECT_EQ(torn, 0);
  co_await writing;
}

}  // namespace
}  // namespace cairn::conformance
