// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/thin.h"

#include <gtest/gtest.h>

#include <map>

#include "testing/sim_test.h"
#include "testing/stack/files.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr uint64_t kData = 128_KiB;  // where it begins on the drive below

SIM_TEST(Thin, TakesSpaceWhenWrittenAndGivesItBackBelow) {
  sim::Medium& disk = cluster.node("host").disk("d");
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, "thin(file:d,size=64M, chunk=64K)", leaves);
  EXPECT_EQ(fact(*drive, "chunks_used"), 0u);
  EXPECT_EQ(fact(*drive, "chunk_bytes"), 65536u);
  const uint64_t metadata = disk.next_data(kData).length;
  co_await write_value(*drive, 100, 7);
  EXPECT_EQ(fact(*drive, "chunks_used"), 1u);
  const Extent hole = drive->extent_at(Lba(0), 1000);
  EXPECT_TRUE(hole.is_hole);
  EXPECT_EQ(hole.blocks, 96u);
  const Extent data = drive->extent_at(Lba(100), 1000);
  EXPECT_FALSE(data.is_hole);
  EXPECT_EQ(data.blocks, 12u);
  EXPECT_EQ(co_await read_value(*drive, 99), 0);
  EXPECT_EQ(co_await read_value(*drive, 100), 7);
  EXPECT_EQ(co_await read_value(*drive, 101), 0);
  EXPECT_GT(disk.next_data(kData).length, metadata);
  // A part of a chunk keeps its place, all of it does not.
  EXPECT_TRUE((co_await drive->discard(Lba(96), 8)).has_value());
  EXPECT_EQ(co_await read_value(*drive, 100), 0);
  EXPECT_EQ(fact(*drive, "chunks_used"), 1u);
  EXPECT_TRUE((co_await drive->discard(Lba(90), 30)).has_value());
  EXPECT_EQ(fact(*drive, "chunks_used"), 0u);
  EXPECT_TRUE((co_await drive->flush()).has_value());
  co_await drive->close();
  EXPECT_EQ(disk.next_data(kData).length, metadata);
}

SIM_TEST(Thin, LosesNothingWhenItIsFull) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, "thin(file:d,size=2M, chunk=16K, virtual=1G)", leaves);
  EXPECT_EQ(drive->geometry().bytes(), 1_GiB);
  const uint64_t chunks = fact(*drive, "chunks_below");
  for (uint64_t i = 0; i < chunks; ++i) {
    EXPECT_EQ(fact(*drive, "is_low"), i * 100 >= chunks * 80 ? 1u : 0u);
    co_await write_value(*drive, i * 1000, static_cast<uint8_t>(i + 1));
  }
  EXPECT_EQ(fact(*drive, "chunks_free"), 0u);
  const std::vector<std::byte> data = blocks_of(1, 1);
  const Result<void> refused = co_await drive->write(Lba(999'999 / 4), data);
  CO_ASSERT_TRUE(!refused.has_value());
  EXPECT_EQ(refused.error().code(), Errc::kNoSpace);
  for (uint64_t i = 0; i < chunks; ++i) {
    EXPECT_EQ(co_await read_value(*drive, i * 1000), static_cast<uint8_t>(i + 1));
  }
  co_await write_value(*drive, 1, 9);
  // What a discard frees can be written at once.
  EXPECT_TRUE((co_await drive->discard(Lba(1000), 1000)).has_value());
  co_await write_value(*drive, 50'000, 5);
  EXPECT_EQ(co_await read_value(*drive, 50'000), 5);
  EXPECT_EQ(co_await read_value(*drive, 1000), 0);
  co_await drive->close();
}

SIM_TEST(Thin, ShowsNothingOfWhatWasBelow) {
  SourceLeaves leaves;
  auto junk = co_await must_open(env, "file:d,size=4M", leaves);
  for (uint64_t block = 2; block < 1024; block += 2) co_await write_value(*junk, block, 0xee, 2);
  co_await junk->close();
  junk = nullptr;
  leaves.close();
  LeavesWithFiles willing({});
  willing.formats = true;
  const auto drive = co_await must_open(env, "thin(file:d,size=4M, chunk=64K)", willing);
  co_await write_value(*drive, 37, 1);
  for (uint64_t block = 0; block < drive->geometry().blocks; ++block) {
    EXPECT_EQ(co_await read_value(*drive, block), block == 37 ? 1 : 0) << block;
  }
  co_await drive->close();
}

SIM_TEST(Thin, GrowsAndStaysSo) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "thin(file:d,size=4M, virtual=1G)", leaves);
  co_await write_value(*drive, 5, 5);
  EXPECT_TRUE((co_await drive->resize(2_GiB / 4096)).has_value());
  co_await write_value(*drive, 2_GiB / 4096 - 1, 6);
  EXPECT_EQ((co_await drive->resize(100)).error().code(), Errc::kUnsupported);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  drive = co_await must_open(env, "thin(file:d,size=4M)", leaves);
  EXPECT_EQ(drive->geometry().bytes(), 2_GiB);
  EXPECT_EQ(co_await read_value(*drive, 2_GiB / 4096 - 1), 6);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  drive = co_await must_open(env, "thin(file:d,size=4M, virtual=3G)", leaves);
  EXPECT_EQ(drive->geometry().bytes(), 3_GiB);
  EXPECT_EQ(co_await read_value(*drive, 5), 5);
  co_await drive->close();
}

// The line that served it before it grew is often used again: nothing shrinks, and it says so.
SIM_TEST(Thin, OpensWithTheLineFromBeforeItGrew) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, "thin(file:d,size=4M, virtual=1G)", leaves);
  EXPECT_TRUE(drive->concerns().empty());
  EXPECT_TRUE((co_await drive->resize(2_GiB / 4096)).has_value());
  EXPECT_TRUE(drive->concerns().empty());
  co_await write_value(*drive, 2_GiB / 4096 - 1, 6);
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  drive = co_await must_open(env, "thin(file:d,size=4M, virtual=1G)", leaves);
  EXPECT_EQ(drive->geometry().bytes(), 2_GiB);
  EXPECT_EQ(co_await read_value(*drive, 2_GiB / 4096 - 1), 6);
  const std::vector<Concern> said = drive->concerns();
  CO_ASSERT_TRUE(said.size() == 1);
  EXPECT_EQ(said[0].code, "larger_than_said");
  EXPECT_EQ(said[0].health, Health::kOk);
  EXPECT_NE(said[0].what.find("write virtual=2G,"), std::string::npos) << said[0].what;
  co_await drive->close();
}

SIM_TEST(Thin, DoesNothingWhenNoBlocksAreNamed) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, "thin(mem:size=4M, virtual=4M)", leaves);
  for (const uint64_t lba : {uint64_t{0}, drive->geometry().blocks}) {
    EXPECT_TRUE((co_await drive->discard(Lba(lba), 0)).has_value());
    EXPECT_TRUE((co_await drive->read(Lba(lba), {})).has_value());
  }
  co_await drive->close();
}

// Whatever does not open leaves every byte as it was.
SIM_TEST(Thin, RefusesWhatIsNotItsOwnAndWritesNothing) {
  sim::Medium& disk = cluster.node("host").disk("d");
  SourceLeaves leaves;
  std::string why = co_await why_not(env, "thin(file:small,size=64K)", leaves);
  EXPECT_NE(why.find("too small"), std::string::npos) << why;
  EXPECT_EQ(co_await why_not(env, "thin(file:d,size=4M, chunk=32K)", leaves), "");
  leaves.close();
  std::vector<std::byte> before(4_MiB);
  disk.peek(0, before);
  const std::map<std::string, std::string> refused = {
      {"thin(file:d, chunk=64K)", "chunks of another size"},
      {"thin(file:d, virtual=1000)", "multiple of the block"},
      {"thin(slice(file:d, length=3M))", "smaller"},
      {"thin(slice(file:d, offset=4K))", ""},
  };
  for (const auto& [stack, reason] : refused) {
    why = co_await why_not(env, stack, leaves);
    leaves.close();
    EXPECT_NE(why, "") << stack;
    EXPECT_NE(why.find(reason), std::string::npos) << why;
  }
  std::vector<std::byte> after(4_MiB);
  disk.peek(0, after);
  EXPECT_EQ(before, after);
  // A journal that is damaged in every block is found out.
  std::vector<std::byte> noise(60 * 4096, std::byte{0x5a});
  disk.poke(2 * 4096, noise);
  why = co_await why_not(env, "thin(file:d)", leaves);
  EXPECT_NE(why.find("journal"), std::string::npos) << why;
}

}  // namespace
}  // namespace cairn::drive
