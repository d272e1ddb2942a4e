// SPDX-License-Identifier: Apache-2.0
// What a mirror opens with, and what its legs say. Load, losses and crashes are in tests/stack.
#include "service/raid/mirror.h"

#include <gtest/gtest.h>

#include "service/raid/mirror_format.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

MirrorLabel some_label() {
  MirrorLabel label{.id = {1, 2},
                    .generation = 3,
                    .data_offset = 16,
                    .data_blocks = 1000,
                    .region_blocks = 16,
                    .block_size = 512,
                    .leg_count = 2,
                    .own_id = 6,
                    .primary = 1,
                    .writer = 9,
                    .medium = 10};
  label.legs[0] = {.id = 5, .stale_from = 2};
  label.legs[1] = {.id = 6};
  return label;
}

TEST(MirrorFormat, ALabelIsReadAsItWasWritten) {
  std::vector<std::byte> block(512);
  encode_label(some_label(), block);
  EXPECT_EQ(as_text(Bytes(block).first(8)), "CnMirror");
  EXPECT_EQ(load<uint32_t>(Bytes(block).subspan(8)), 1U);
  const Result<MirrorLabel> read = decode_label(block);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, some_label());
}

TEST(MirrorFormat, DamageToAnyByteIsFound) {
  std::vector<std::byte> block(512);
  encode_label(some_label(), block);
  for (std::byte& byte : block) {
    byte ^= std::byte{0x10};
    EXPECT_FALSE(decode_label(block));
    byte ^= std::byte{0x10};
  }
  RegionSet regions(some_label().regions());
  regions.add(62);
  encode_bitmap(regions, some_label(), block);
  EXPECT_TRUE(decode_bitmap(some_label(), block)->has(62));
  for (std::byte& byte : block) {
    byte ^= std::byte{0x10};
    EXPECT_FALSE(decode_bitmap(some_label(), block));
    byte ^= std::byte{0x10};
  }
}

TEST(MirrorFormat, NumbersThatMakeNoSenseAreRefused) {
  const auto refused = [](auto change) {
    MirrorLabel label = some_label();
    change(label);
    std::vector<std::byte> block(512);
    encode_label(label, block);
    const Result<MirrorLabel> read = decode_label(block);
    return !read && read.error() == Errc::kCorrupt;
  };
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.leg_count = 9; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.leg_count = 0; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.region_blocks = 0; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.data_blocks = UINT64_MAX; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.data_blocks = uint64_t{1} << 40; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.data_offset = 1; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.block_size = 4096; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.own_id = 7; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.legs[0].id = 6; })) << "two legs in one place";
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.primary = 2; }));
  EXPECT_TRUE(refused([](MirrorLabel& l) { l.generation = 0; }));
}

class Mirror : public RedundantTest {
 protected:
  int first_byte(const std::string& path) {
    std::vector<std::byte> block(4096);
    disk(path).peek(64_KiB, block);
    return std::to_integer<int>(block[0]);
  }
};

TEST_F(Mirror, KnowsItsLegsInAnyOrder) {
  EXPECT_EQ(use_stack("mirror(file:a,size=1M, file:b,size=1M)", 7), "");
  EXPECT_EQ(use_stack("mirror(file:b, file:a)"), "");
  EXPECT_EQ(first_byte("a"), 7);
  EXPECT_EQ(first_byte("b"), 7);
}

TEST_F(Mirror, AMissingLegIsRefusedUnlessToldAndCatchesUpLater) {
  EXPECT_EQ(use_stack("mirror(file:a,size=1M, file:b,size=1M)", 7), "");
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:gone)"), "degraded=yes"));
  EXPECT_EQ(use_stack("mirror(file:a, file:gone, degraded=yes)", 8), "");
  EXPECT_EQ(first_byte("b"), 7);
  // Known to be stale, it may be missing; and alone it is not enough.
  EXPECT_EQ(use_stack("mirror(file:a, file:gone)", 9), "");
  EXPECT_TRUE(says(use_stack("mirror(file:gone, file:b)"), "degraded=yes"));
  EXPECT_EQ(use_stack("mirror(file:a, file:b)"), "");
  EXPECT_EQ(first_byte("b"), 9);
}

TEST_F(Mirror, LegsThatWentOnAloneAreSplitBrain) {
  EXPECT_EQ(use_stack("mirror(file:a,size=1M, file:b,size=1M)", 7), "");
  EXPECT_EQ(use_stack("mirror(file:a, file:gone, degraded=yes)", 8), "");
  EXPECT_EQ(use_stack("mirror(file:gone, file:b, degraded=yes)", 9), "");
  const auto a = contents("a");
  const auto b = contents("b");
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:b)"), "split brain"));
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:b, degraded=yes)"), "split brain"));
  EXPECT_TRUE(contents("a") == a && contents("b") == b) << "nothing is written";
}

// Leg a went on alone, and the block that says so cannot be read any more. The older one would call
// leg b, which lacks what was written since, as good as a.
TEST_F(Mirror, ALabelThatCannotBeReadIsNotTakenForAnOlderOne) {
  EXPECT_EQ(use_stack("mirror(file:a,size=1M, file:b,size=1M)", 7), "");
  EXPECT_EQ(use_stack("mirror(file:a, file:gone, degraded=yes)", 8), "");
  uint64_t newest = 0;
  uint64_t slot = 0;
  for (const uint64_t at : {0, 1}) {
    std::vector<std::byte> block(4096);
    disk("a").peek(at * 4096, block);
    const Result<MirrorLabel> label = decode_label(block);
    ASSERT_TRUE(label);
    if (label->generation > newest) slot = at;
    newest = std::max(newest, label->generation);
  }
  disk("a").fail_reads({slot * 4096, 4096});
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:b)"), "may have newer data"));
  disk("a").heal();
  EXPECT_EQ(use_stack("mirror(file:a, file:b)"), "");
}

TEST_F(Mirror, DrivesThatHoldSomethingElseAreRefusedUntouched) {
  EXPECT_EQ(use_stack("mirror(file:a,size=1M, file:b,size=1M)", 7), "");
  EXPECT_EQ(use_stack("mirror(file:c,size=1M, file:d,size=1M)", 7), "");
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:d)"), "different stacks"));
  disk("e").create(1_MiB);
  disk("e").poke(4096, blocks_of(1, 1));
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:e)"), "something else"));
  EXPECT_TRUE(says(use_stack("mirror(file:f,size=1M, file:e)"), "something else"));
  disk("g").create(1_MiB);
  disk("g").poke(0, contents("a"));
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:g)"), "copies of the same leg"));
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:b, file:h,size=1M)"), "spares=N"));
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:i,size=512K, degraded=yes)"), "smaller"));
  EXPECT_TRUE(says(use_stack("mirror(file:j,size=64K, file:k,size=64K)"), "too small"));
  EXPECT_TRUE(says(use_stack("mirror(mem:size=1M, mem:size=1M,block=512)"), "block sizes"));
  EXPECT_EQ(use_stack("mirror(file:a, file:b)"), "") << "after all that";
}

TEST_F(Mirror, ABlankDriveReplacesALegThatIsGone) {
  EXPECT_EQ(use_stack("mirror(file:a,size=1M, file:b,size=1M)", 7), "");
  EXPECT_EQ(use_stack("mirror(file:a, file:gone, degraded=yes)"), "");
  EXPECT_EQ(use_stack("mirror(file:a, file:gone, file:c,size=1M, spares=1, retry_ms=1)", 8), "");
  EXPECT_EQ(first_byte("c"), 8);
  EXPECT_EQ(use_stack("mirror(file:c, file:a)"), "");
}

TEST_F(Mirror, OneDamagedLabelIsNoLoss) {
  EXPECT_EQ(use_stack("mirror(file:a,size=1M, file:b,size=1M)", 7), "");
  disk("a").corrupt({.offset = 0, .length = 4096}, 3);
  disk("b").corrupt({.offset = uint64_t{2} * 4096, .length = 64}, 3);
  EXPECT_EQ(use_stack("mirror(file:a, file:b)"), "");
  disk("a").corrupt({.offset = 4096, .length = 4096}, 3);
  EXPECT_EQ(use_stack("mirror(file:a, file:b)"), "") << "the other one was written again";
  disk("a").corrupt({.offset = 0, .length = 8192}, 3);
  EXPECT_TRUE(says(use_stack("mirror(file:a, file:b)"), "mirror cannot be opened"));
}

// Whether the newest label on a disk calls a leg stale.
bool calls_one_stale(const sim::Medium& disk) {
  MirrorLabel newest;
  for (uint64_t slot = 0; slot < 2; ++slot) {
    std::vector<std::byte> block(4096);
    disk.peek(slot * 4096, block);
    const Result<MirrorLabel> label = decode_label(block);
    if (label && label->generation > newest.generation) newest = *label;
  }
  return newest.legs[0].stale_from != 0 || newest.legs[1].stale_from != 0;
}

task::Task<bool> write_and_look(Drive& drive, uint64_t lba, const sim::Medium& disk) {
  const std::vector<std::byte> block = blocks_of(3, 1);
  const Result<void> written = co_await drive.write(Lba(lba), block);
  co_return written&& calls_one_stale(disk);
}

task::Task<void> write_while_a_leg_fails(env::Env& env, sim::Medium& good, sim::Medium& bad,
                                         std::vector<bool>& known) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "mirror(file:a,size=1M, file:b,size=1M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  while (mirror_status(*drive)->regions_to_copy > 0) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
  bad.fail_writes();
  std::vector<task::Task<bool>> writes;
  writes.reserve(8);
  for (uint64_t i = 0; i < 8; ++i) writes.push_back(write_and_look(*drive, i * 3, good));
  known = co_await task::when_all(std::move(writes));
  co_await drive->close();
}

// Otherwise a crash after the second of them would let the leg that lacks it be believed.
TEST_F(Mirror, EveryWriteThatALegFailsWaitsForTheLabelThatSaysSo) {
  std::vector<bool> known;
  run_in_sim(cluster_, [&](env::Env& env) {
    return write_while_a_leg_fails(env, disk("a"), disk("b"), known);
  });
  EXPECT_EQ(known, std::vector<bool>(8, true));
}

task::Task<void> time_copy(env::Env& env, Duration& took, size_t& regions) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "mirror(mem:size=2112K, mem:size=2112K, rate=1M)", leaves);
  const Time start = env.now();
  regions = mirror_status(*drive)->regions_to_copy;
  while (mirror_status(*drive)->regions_to_copy > 0) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
  took = env.now() - start;
  co_await drive->close();
}

TEST(MirrorCopy, KeepsToItsRateAndShowsItsProgress) {
  Duration took;
  size_t regions = 0;
  run_in_sim([&](env::Env& env) { return time_copy(env, took, regions); });
  EXPECT_EQ(regions, 31U) << "of 32, the first was copied at once";
  EXPECT_GT(took, 1800_ms);
  EXPECT_LT(took, 2100_ms);
}

}  // namespace
}  // namespace cairn::drive
