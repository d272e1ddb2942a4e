// SPDX-License-Identifier: Apache-2.0
#include "loadgen/drive_verify.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drive/memory_drive.h"
#include "drive/source.h"
#include "loadgen/block_pattern.h"
#include "task/gate.h"
#include "world/sim/cluster.h"

namespace cairn::loadgen {
namespace {

using drive::DriveOp;
using drive::Request;

constexpr uint64_t kBlocks = 64;
constexpr uint64_t kSeed = 7;

// --- blocks ------------------------------------------------------------------------------------

TEST(BlockPattern, SaysWhoWroteIt) {
  std::vector<std::byte> block(4096);
  const BlockStamp stamp{.seed = 1, .lba = Lba(9), .generation = 3};
  fill_block(block, stamp);
  EXPECT_EQ(read_stamp(block), stamp);
  EXPECT_EQ(describe_block(block, {.seed = 1, .lba = Lba(9)}), "generation 3 of this block");
  EXPECT_EQ(describe_block(block, {.seed = 1, .lba = Lba(8)}), "generation 3 of block 9");
  EXPECT_EQ(describe_block(block, {.seed = 2, .lba = Lba(9)}),
            "generation 3 of this block of a run with seed 1");
  block[1000] ^= std::byte{1};
  EXPECT_EQ(read_stamp(block), std::nullopt);
  EXPECT_EQ(describe_block(block, {.seed = 1, .lba = Lba(9)}),
            "generation 3 of this block, damaged from byte 1000 on");
  block.assign(4096, std::byte{0});
  EXPECT_EQ(describe_block(block, stamp), "zeroes");
  block.assign(4096, std::byte{1});
  EXPECT_EQ(describe_block(block, stamp), "bytes that no verify has written");
}

// --- the oracle --------------------------------------------------------------------------------

TEST(BlockOracle, AWriteMayShowFromItsBeginAndMustFromItsEnd) {
  BlockOracle oracle(kSeed, Lba(10), 4);
  EXPECT_FALSE(oracle.is_known(Lba(11)));
  EXPECT_EQ(oracle.write_begins(Lba(11)), 1U);
  EXPECT_EQ(oracle.allowed(Lba(11)).low, 0U);
  EXPECT_EQ(oracle.allowed(Lba(11)).high, 1U);
  oracle.write_acknowledged(Lba(11), false);
  EXPECT_EQ(oracle.allowed(Lba(11)).low, 1U);
  EXPECT_EQ(oracle.allowed_after_crash(Lba(11)).low, 0U);
}

TEST(BlockOracle, AFlushMakesDurableWhatWasAcknowledgedBeforeItBegan) {
  BlockOracle oracle(kSeed, Lba(0), 2);
  oracle.write_begins(Lba(0));
  oracle.write_acknowledged(Lba(0), false);
  oracle.write_begins(Lba(1));
  const uint64_t flush = oracle.flush_begins();
  oracle.write_acknowledged(Lba(1), false);
  oracle.flush_done(flush);
  EXPECT_EQ(oracle.allowed_after_crash(Lba(0)).low, 1U);
  EXPECT_EQ(oracle.allowed_after_crash(Lba(1)).low, 0U);
  // A later write that is not durable does not take back what was.
  oracle.write_begins(Lba(0));
  oracle.write_acknowledged(Lba(0), false);
  EXPECT_EQ(oracle.allowed_after_crash(Lba(0)).low, 1U);
  EXPECT_EQ(oracle.allowed_after_crash(Lba(0)).high, 2U);
  oracle.write_begins(Lba(1));
  oracle.write_acknowledged(Lba(1), true);
  EXPECT_EQ(oracle.allowed_after_crash(Lba(1)).low, 2U);
}

TEST(BlockOracle, BlocksAreClaimedOnce) {
  BlockOracle oracle(kSeed, Lba(0), 8);
  EXPECT_TRUE(oracle.claim(Lba(2), 3));
  EXPECT_FALSE(oracle.claim(Lba(4), 2));
  EXPECT_TRUE(oracle.claim(Lba(5), 3));
  oracle.release(Lba(2), 3);
  EXPECT_TRUE(oracle.claim(Lba(4), 1));
}

TEST(BlockOracle, IsTheSameAfterSavingAndLoading) {
  BlockOracle oracle(kSeed, Lba(3), 5);
  oracle.write_begins(Lba(4));
  oracle.write_acknowledged(Lba(4), false);
  oracle.flush_done(oracle.flush_begins());
  oracle.write_begins(Lba(4));
  const std::vector<std::byte> saved = oracle.save();
  const Result<BlockOracle> loaded = BlockOracle::load(saved);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->seed(), kSeed);
  EXPECT_EQ(loaded->first(), Lba(3));
  EXPECT_EQ(loaded->blocks(), 5U);
  EXPECT_EQ(loaded->allowed_after_crash(Lba(4)).low, 1U);
  EXPECT_EQ(loaded->allowed(Lba(4)).high, 2U);
  EXPECT_FALSE(loaded->is_known(Lba(5)));
}

TEST(BlockOracle, BytesThatAreNoOracleAreRefused) {
  const std::vector<std::byte> saved = BlockOracle(kSeed, Lba(3), 5).save();
  for (size_t size = 0; size < saved.size(); ++size) {
    EXPECT_FALSE(BlockOracle::load(Bytes(saved).first(size)).has_value());
  }
  for (size_t at = 0; at < saved.size(); ++at) {
    std::vector<std::byte> damaged = saved;
    damaged[at] ^= std::byte{0x40};
    EXPECT_FALSE(BlockOracle::load(damaged).has_value()) << at;
  }
}

// --- drives --------------------------------------------------------------------------------------

// Memory that goes wrong once, in a chosen way.
class FaultyDrive final : public drive::Drive {
 public:
  enum class Fault : uint8_t { kNone, kLost, kMisdirected, kTorn, kZeroed, kError };
  FaultyDrive(env::Env& env, drive::MemoryMedium& medium, Fault fault, uint64_t at)
      : inner_(env, medium), fault_(fault), at_(at) {}
  const drive::Geometry& geometry() const override { return inner_.geometry(); }
  task::Task<void> close() override { return gate_.close(); }

 private:
  void start(DriveOp& op) override { gate_.spawn(serve(op)); }
  void cancel(DriveOp&) override {}
  task::Task<void> serve(DriveOp& op) {
    const bool is_write = op.request.kind == Request::Kind::kWrite;
    const Fault fault = is_write && writes_++ == at_ ? fault_ : Fault::kNone;
    if (fault == Fault::kLost) co_return op.complete({});
    if (fault == Fault::kError) co_return op.complete(fail(Errc::kIo, "the medium"));
    Request request = op.request;
    if (fault == Fault::kMisdirected) {
      const bool is_last = request.lba.value() + request.blocks == geometry().blocks;
      request.lba = Lba(is_last ? request.lba.value() - 1 : request.lba.value() + 1);
    }
    if (fault == Fault::kTorn) op.data()[0][700] ^= std::byte{1};
    if (fault == Fault::kZeroed) request.kind = Request::Kind::kWriteZeroes;
    const auto data = fault == Fault::kZeroed ? std::span<const MutableBytes>() : op.data();
    const Result<void> done = co_await inner_.submit(request, data);
    op.complete(done);
  }

  drive::MemoryDrive inner_;
  Fault fault_;
  uint64_t at_;
  uint64_t writes_ = 0;
  task::Gate gate_;
};

using Fault = FaultyDrive::Fault;

struct Trial {
  Fault fault = Fault::kNone;
  DriveVerify options = {.requests_max = 3000};
  VerifyResult result;
  VerifyResult checked;
  VerifyResult stamps;
};

task::Task<void> try_verify(env::Env& env, Trial& trial) {
  auto medium = drive::MemoryMedium::make(env, kBlocks * 4096, 4096);
  FaultyDrive drive(env, **medium, trial.fault, 1000);
  BlockOracle oracle(kSeed, Lba(1), kBlocks - 2);
  Result<VerifyResult> result =
      co_await verify_drive(env, drive, trial.options, oracle, env.stop_token());
  EXPECT_TRUE(result.has_value());
  trial.result = *result;
  result = co_await check_drive(env, drive, trial.options, oracle, env.stop_token());
  EXPECT_TRUE(result.has_value());
  trial.checked = *result;
  const StampRange range{.seed = kSeed, .first = Lba(0), .blocks = kBlocks};
  result = co_await check_stamps(env, drive, trial.options, range, env.stop_token());
  EXPECT_TRUE(result.has_value());
  trial.stamps = *result;
  co_await drive.close();
}

Trial run(Fault fault, double write_share = 0.5) {
  Trial trial{.fault = fault};
  trial.options.write_share = write_share;
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host");
  node.start([&trial](env::Env& env) { return try_verify(env, trial); });
  EXPECT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s));
  return trial;
}

std::string found(Fault fault) {
  const Trial trial = run(fault);
  return trial.result.mismatch ? trial.result.mismatch->found : "nothing";
}

TEST(DriveVerify, ASoundDrivePassesWithEveryBlockKnownAndChecked) {
  const Trial trial = run(Fault::kNone);
  EXPECT_TRUE(trial.result.ok());
  EXPECT_GT(trial.result.writes, 1000U);
  EXPECT_GT(trial.result.reads, 1000U);
  EXPECT_GT(trial.result.blocks_checked, kBlocks);
  EXPECT_TRUE(trial.checked.ok());
  EXPECT_EQ(trial.checked.blocks_checked, kBlocks - 2);
  EXPECT_TRUE(trial.stamps.ok());
  EXPECT_EQ(trial.stamps.blocks_checked, kBlocks - 2);
}

TEST(DriveVerify, ALostWriteIsFoundAsAnOlderGeneration) {
  const Trial trial = run(Fault::kLost);
  ASSERT_TRUE(trial.result.mismatch.has_value());
  const BlockMismatch& mismatch = *trial.result.mismatch;
  EXPECT_EQ(mismatch.allowed.low, mismatch.allowed.high);
  EXPECT_EQ(mismatch.found,
            "generation " + std::to_string(mismatch.allowed.low - 1) + " of this block");
  // Blocks that are whole and in place say nothing of newer ones.
  EXPECT_TRUE(trial.stamps.ok());
}

TEST(DriveVerify, AMisdirectedWriteIsFoundByItsPlace) {
  EXPECT_NE(found(Fault::kMisdirected).find(" of "), std::string::npos);
  EXPECT_FALSE(run(Fault::kMisdirected).stamps.ok());
}

TEST(DriveVerify, DamagedBytesAreFound) {
  EXPECT_NE(found(Fault::kTorn).find("damaged from byte 696 on"), std::string::npos);
  EXPECT_FALSE(run(Fault::kTorn).stamps.ok());
}

TEST(DriveVerify, ZeroesInsteadOfDataAreFound) { EXPECT_EQ(found(Fault::kZeroed), "zeroes"); }

// Even when nothing reads meanwhile.
TEST(DriveVerify, TheLastReadingFindsWhatWritingAloneDoesNot) {
  const Trial trial = run(Fault::kNone, 1.0);
  EXPECT_TRUE(trial.result.ok());
  EXPECT_EQ(trial.result.blocks_checked, kBlocks - 2);
}

TEST(DriveVerify, AFailedWriteEndsItAndLeavesItsBlocksOpen) {
  const Trial trial = run(Fault::kError);
  ASSERT_TRUE(trial.result.error.has_value());
  EXPECT_EQ(trial.result.error->code(), Errc::kIo);
  EXPECT_NE(trial.result.failed.find("writing block"), std::string::npos);
  EXPECT_FALSE(trial.result.mismatch.has_value());
  EXPECT_TRUE(trial.checked.ok());
}

// --- crashes -------------------------------------------------------------------------------------

// What the outside world knows; a crash does not touch it.
struct Crash {
  BlockOracle oracle{kSeed, Lba(0), kBlocks};
  bool trusts_acknowledgements = false;  // as if each were a flush
  VerifyResult checked;
  bool is_checked = false;
};

task::Task<void> verify_file(env::Env& env, Crash& crash, bool checks) {
  const drive::Spec spec{.kind = drive::Spec::Kind::kFile, .path = "d0", .size = kBlocks * 4096};
  Result<std::unique_ptr<drive::Source>> source = drive::Source::make(env, spec);
  if (!source) co_return;
  Result<std::unique_ptr<drive::Drive>> drive = (*source)->open(env);
  if (!drive) co_return;
  const DriveVerify options{.depth = 8, .flush_every = 5_ms, .duration = 1000_s};
  if (checks) {
    Result<VerifyResult> result =
        co_await check_drive(env, **drive, options, crash.oracle, env.stop_token());
    if (result) crash.checked = std::move(*result);
    crash.is_checked = true;
  } else {
    [[maybe_unused]] const Result<VerifyResult> result =
        co_await verify_drive(env, **drive, options, crash.oracle, env.stop_token());
  }
  co_await (*drive)->close();
}

void crash_and_check(uint64_t seed, Crash& crash) {
  sim::Cluster cluster({.seed = seed});
  sim::Node& node = cluster.node("host");
  node.start([&crash](env::Env& env) { return verify_file(env, crash, false); });
  cluster.run_for(Duration{static_cast<int64_t>(10'000'000 + seed * 1'234'567)});
  node.crash();
  if (crash.trusts_acknowledgements) crash.oracle.flush_done(crash.oracle.flush_begins());
  node.start([&crash](env::Env& env) { return verify_file(env, crash, true); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s));
  ASSERT_TRUE(crash.is_checked);
}

TEST(DriveVerify, WhatWasFlushedIsThereAfterACrash) {
  uint64_t checked = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Crash crash;
    crash_and_check(seed, crash);
    EXPECT_TRUE(crash.checked.ok()) << "seed " << seed;
    checked += crash.checked.blocks_checked;
  }
  EXPECT_GT(checked, 100U);
}

// The crash does lose, and the check does see it.
TEST(DriveVerify, WhatWasOnlyAcknowledgedMayBeGoneAfterACrash) {
  bool is_missed = false;
  for (uint64_t seed = 1; seed <= 20 && !is_missed; ++seed) {
    Crash crash{.trusts_acknowledgements = true};
    crash_and_check(seed, crash);
    is_missed = crash.checked.mismatch.has_value();
  }
  EXPECT_TRUE(is_missed);
}

}  // namespace
}  // namespace cairn::loadgen
