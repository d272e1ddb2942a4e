// SPDX-License-Identifier: Apache-2.0
// What a crash left in free units takes no space below once the drive was opened again.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "drive/filter_drive.h"
#include "task/deadline.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

struct Case {
  const char* name;
  const char* stack;
  const char* disk;  // that was written to before power failed
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.stack; }

constexpr Case kCases[] = {
    {"thin", "thin(file:d,size=16M)", "d"},
    {"snapshot", "snapshot(file:d,size=16M)", "d"},
    {"compress", "compress(file:d,size=16M)", "d"},
    {"dedup", "dedup(file:d,size=16M)", "d"},
    {"spillover", "spillover(file:d,size=16M, file:e,size=16M)", "d"},
    {"spillover_elsewhere", "spillover(file:d,size=16M, file:e,size=16M)", "e"},
};

constexpr uint64_t kLeftAt = 12_MiB;  // where nothing is stored yet
constexpr size_t kLeft = 1_MiB;

// A drive that calls everything data, if `discards` counts those that it gets.
class Opaque final : public FilterDrive {
 public:
  Opaque(std::unique_ptr<Drive> below, uint64_t& discards)
      : FilterDrive(std::move(below)), discards_(discards) {}
  Extent extent_at(Lba, uint64_t max) const override { return {.blocks = max}; }

 private:
  void start(DriveOp& op) override {
    if (op.request.kind == Request::Kind::kDiscard) ++discards_;
    pass(op);
  }
  uint64_t& discards_;
};

class TestLeaves final : public SourceLeaves {
 public:
  explicit TestLeaves(uint64_t* discards) : discards_(discards) {}
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    Leaf leaf = co_await SourceLeaves::open(env, std::move(text));
    if (leaf && discards_ != nullptr) {
      leaf = std::make_unique<Opaque>(std::move(*leaf), *discards_);
    }
    co_return leaf;
  }

 private:
  uint64_t* discards_;
};

task::Task<void> use(env::Env& env, std::string stack, uint8_t value, uint64_t* discards) {
  TestLeaves leaves(discards);
  const auto drive = co_await must_open(env, stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  if (value != 0) {
    co_await write_value(*drive, 100, value, 32);
    const Result<void> flushed = co_await drive->flush();
    EXPECT_TRUE(flushed);
  }
  const Result<void> slept = co_await task::sleep_for(env, 1_s);
  EXPECT_TRUE(slept);
  for (const uint64_t block : {100, 131}) {
    const int found = co_await read_value(*drive, block);
    EXPECT_EQ(found, 7);
  }
  co_await drive->close();
}

class Reclaim : public testing::TestWithParam<Case> {
 protected:
  void use_stack(uint8_t value, uint64_t* discards = nullptr) {
    run_in_sim(cluster_,
               [&](env::Env& env) { return use(env, GetParam().stack, value, discards); });
  }
  sim::Medium& disk() { return cluster_.node("host").disk(GetParam().disk); }
  // Bytes that are no hole, where something was left.
  uint64_t left() {
    const env::Disk::Extent data = disk().next_data(kLeftAt);
    return data.offset < kLeftAt + kLeft ? data.length : 0;
  }

  sim::Cluster cluster_;
};

TEST_P(Reclaim, GivesBackWhatFreeUnitsHold) {
  use_stack(7);
  ASSERT_EQ(left(), 0U);
  disk().poke(kLeftAt, blocks_of(0x5a, kLeft / 4096));
  ASSERT_EQ(left(), kLeft);
  use_stack(0);
  EXPECT_EQ(left(), 0U);
}

TEST_P(Reclaim, LeavesADriveAloneThatKnowsNoHoles) {
  uint64_t discards = 0;
  use_stack(7, &discards);
  disk().poke(kLeftAt, blocks_of(0x5a, kLeft / 4096));
  discards = 0;
  use_stack(0, &discards);
  EXPECT_EQ(discards, 0U);
  EXPECT_EQ(left(), kLeft);
}

INSTANTIATE_TEST_SUITE_P(Services, Reclaim, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cairn::drive
