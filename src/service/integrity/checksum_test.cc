// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/checksum.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "service/integrity/checksum_format.h"
#include "task/deadline.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr uint64_t kDataOffset = 64_KiB;
constexpr size_t kBlock = 4096;

// A checksummed drive on disk "d0" of 1 MiB whose medium the test changes behind its back.
class ChecksumBench {
 public:
  using Body = task::Task<void> (*)(ChecksumBench&, env::Env&, Drive&);

  // `body` on the open drive.
  void run(Body body) {
    run_in_sim(cluster_, [this, body](env::Env& env) { return open_and_run(env, body); });
  }
  std::string why_not(std::string stack) {
    std::string why;
    run_in_sim(cluster_, [&](env::Env& env) { return ask(env, stack, why); });
    return why;
  }

  sim::Medium& disk() { return cluster_.node("host").disk("d0"); }
  std::vector<std::byte> on_disk(uint64_t block) {
    std::vector<std::byte> bytes(kBlock);
    disk().peek(kDataOffset + block * kBlock, bytes);
    return bytes;
  }
  void put_on_disk(uint64_t block, Bytes bytes) {
    disk().poke(kDataOffset + block * kBlock, bytes);
  }

 private:
  static constexpr const char* kStack = "checksum(file:d0,size=1M)";
  task::Task<void> open_and_run(env::Env& env, Body body) {
    SourceLeaves leaves;
    auto drive = co_await must_open(env, kStack, leaves);
    CO_ASSERT_TRUE(drive != nullptr);
    co_await body(*this, env, *drive);
    co_await drive->close();
  }
  static task::Task<void> ask(env::Env& env, std::string stack, std::string& why) {
    SourceLeaves leaves;
    why = co_await drive::why_not(env, stack, leaves);
  }
  sim::Cluster cluster_;
};

task::Task<Errc> read_one(Drive& drive, uint64_t block) {
  std::vector<std::byte> bytes(kBlock);
  const Result<void> done = co_await drive.read(Lba(block), bytes);
  co_return done ? Errc{} : done.error().code();
}

// Twenty blocks, each another.
task::Task<void> fill(Drive& drive) {
  for (uint8_t i = 0; i < 20; ++i) {
    const std::vector<std::byte> bytes = blocks_of(i + 1, 1);
    const Result<void> done = co_await drive.write(Lba(i), bytes);
    EXPECT_TRUE(done);
  }
}

TEST(Checksum, FindsAnyFlippedBitAndFailsThatBlockAlone) {
  ChecksumBench bench;
  bench.run([](ChecksumBench& bench, env::Env& env, Drive& drive) -> task::Task<void> {
    EXPECT_EQ(drive.geometry().bytes(), 1_MiB - kDataOffset);
    co_await fill(drive);
    for (int i = 0; i < 200; ++i) {
      // Blocks that were never written are guarded too.
      const uint64_t block = env.rng().below(40);
      const std::vector<std::byte> good = bench.on_disk(block);
      std::vector<std::byte> bad = good;
      bad[env.rng().below(kBlock)] ^= static_cast<std::byte>(1 << env.rng().below(8));
      bench.put_on_disk(block, bad);
      const Errc found = co_await read_one(drive, block);
      EXPECT_EQ(found, Errc::kCorrupt) << block;
      const Errc beside = co_await read_one(drive, block + 1);
      EXPECT_EQ(beside, Errc{});
      const Result<void> compared = co_await drive.compare(Lba(block), bad);
      EXPECT_EQ(compared.error(), Errc::kCorrupt);
      bench.put_on_disk(block, good);
    }
    EXPECT_EQ(fact(drive, "blocks_corrupt"), 400U);
  });
}

TEST(Checksum, FindsBlocksInEachOthersPlace) {
  ChecksumBench bench;
  bench.run([](ChecksumBench& bench, env::Env&, Drive& drive) -> task::Task<void> {
    co_await fill(drive);
    // Also a block that is whole and right, elsewhere: equal bytes have other checksums there.
    const std::vector<std::byte> third = bench.on_disk(3);
    bench.put_on_disk(3, bench.on_disk(4));
    bench.put_on_disk(4, third);
    for (const auto& [block, wanted] : {std::pair<uint64_t, Errc>(2, Errc{}),
                                        {3, Errc::kCorrupt},
                                        {4, Errc::kCorrupt},
                                        {5, Errc{}}}) {
      const Errc found = co_await read_one(drive, block);
      EXPECT_EQ(found, wanted) << block;
    }
  });
}

TEST(Checksum, FindsOldBlocksAndThoseThatVanished) {
  ChecksumBench bench;
  bench.run([](ChecksumBench& bench, env::Env&, Drive& drive) -> task::Task<void> {
    co_await fill(drive);
    const std::vector<std::byte> old = bench.on_disk(7);
    co_await fill(drive);
    const std::vector<std::byte> other = blocks_of(99, 1);
    const Result<void> written = co_await drive.write(Lba(7), other);
    EXPECT_TRUE(written);
    bench.put_on_disk(7, old);
    bench.put_on_disk(8, std::vector<std::byte>(kBlock));
    const Errc stale = co_await read_one(drive, 7);
    EXPECT_EQ(stale, Errc::kCorrupt);
    const Errc gone = co_await read_one(drive, 8);
    EXPECT_EQ(gone, Errc::kCorrupt);
    // What is written anew is right again.
    const Result<void> again = co_await drive.write(Lba(7), other);
    EXPECT_TRUE(again);
    const Errc right = co_await read_one(drive, 7);
    EXPECT_EQ(right, Errc{});
  });
}

TEST(Checksum, KnowsItsBlocksWhenItIsOpenedAgain) {
  ChecksumBench bench;
  bench.run([](ChecksumBench&, env::Env&, Drive& drive) { return fill(drive); });
  std::vector<std::byte> bad = bench.on_disk(5);
  bad[100] ^= std::byte{4};
  bench.put_on_disk(5, bad);
  bench.run([](ChecksumBench&, env::Env&, Drive& drive) -> task::Task<void> {
    for (uint64_t block = 0; block < 30; ++block) {
      const Errc found = co_await read_one(drive, block);
      EXPECT_EQ(found, block == 5 ? Errc::kCorrupt : Errc{}) << block;
    }
    EXPECT_EQ(fact(drive, "regions_unsettled"), 0U);
  });
}

TEST(Checksum, ScrubFindsWhatNobodyReads) {
  ChecksumBench bench;
  bench.run([](ChecksumBench& bench, env::Env& env, Drive& drive) -> task::Task<void> {
    co_await fill(drive);
    bench.disk().corrupt({.offset = kDataOffset + 11 * kBlock, .length = kBlock});
    const auto unknown = co_await drive.tell({"dance"});
    EXPECT_NE(unknown.error().find("scrub"), std::string::npos);
    const auto told = co_await drive.tell({"scrub"});
    EXPECT_EQ(told.value(), "scrubbing 240 blocks, 1 copies of each");
    while (fact(drive, "scrubbing") == 1) {
      const Result<void> slept = co_await task::sleep_for(env, 1_ms);
      EXPECT_TRUE(slept);
    }
    EXPECT_EQ(fact(drive, "blocks_scrubbed"), 240U);
    EXPECT_EQ(fact(drive, "blocks_corrupt"), 1U);
  });
}

TEST(Checksum, ADamagedTableFailsReadsUntilAllIsDiscarded) {
  ChecksumBench bench;
  bench.run([](ChecksumBench&, env::Env&, Drive& drive) { return fill(drive); });
  bench.disk().corrupt({.offset = kChecksumTableBlock * kBlock, .length = kBlock});
  bench.run([](ChecksumBench&, env::Env&, Drive& drive) -> task::Task<void> {
    const Errc found = co_await read_one(drive, 5);
    EXPECT_EQ(found, Errc::kCorrupt);
    const Result<void> discarded = co_await drive.discard(Lba(0), drive.geometry().blocks);
    EXPECT_TRUE(discarded);
    co_await fill(drive);
    const Errc right = co_await read_one(drive, 5);
    EXPECT_EQ(right, Errc{});
  });
}

TEST(Checksum, DoesNotOpenWhatIsNotItsOwn) {
  ChecksumBench bench;
  bench.run([](ChecksumBench&, env::Env&, Drive& drive) { return fill(drive); });
  EXPECT_NE(bench.why_not("checksum(slice(file:d0, length=512K))").find("smaller than it was"),
            std::string::npos);
  EXPECT_NE(bench.why_not("checksum(mem:size=64K)").find("too small"), std::string::npos);
  bench.disk().corrupt({.offset = kChecksumBitmapBlock * kBlock, .length = kBlock});
  std::vector<std::byte> before(bench.disk().size());
  bench.disk().peek(0, before);
  EXPECT_NE(bench.why_not("checksum(file:d0)").find("corrupt"), std::string::npos);
  std::vector<std::byte> after(before.size());
  bench.disk().peek(0, after);
  EXPECT_EQ(before, after);
}

// Of a block that power tore each unit is the old one or the new one.
TEST(ChecksumFormat, UnitsOfBeforeAndAfterMakeAPage) {
  ChecksumShape shape = *new_checksum_shape({.blocks = 1000, .block_size = 4096});
  std::vector<uint32_t> entries(shape.page_entries(), 17);
  std::vector<std::byte> before(4096);
  encode_checksum_page(shape, 2, entries, before);
  entries.assign(entries.size(), 18);
  std::vector<std::byte> after(4096);
  encode_checksum_page(shape, 2, entries, after);
  std::ranges::copy(Bytes(before).first(1024), after.begin());
  ASSERT_TRUE(decode_checksum_page(shape, 2, after, entries));
  EXPECT_EQ(entries.front(), 17U);
  EXPECT_EQ(entries.back(), 18U);
}

TEST(ChecksumFormat, ABodyWithoutAUnitHasUnitsOfABlock) {
  const ChecksumShape shape = *new_checksum_shape({.blocks = 1000, .block_size = 4096});
  Label label{.id = shape.id, .generation = 1, .blocks = 1000, .block_size = 4096, .body = {}};
  label.body = encode_checksum_body(shape);
  label.body.resize(24);
  const Result<ChecksumShape> found = decode_checksum_body(label);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unit, 4096U);
  EXPECT_EQ(found->page_entries(), (4096U - 40) / 4);
}

TEST(ChecksumFormat, RefusesWhatIsDamaged) {
  const Geometry below{.blocks = 1000, .block_size = 512};
  ChecksumShape shape = *new_checksum_shape(below);
  shape.id = {3, 4};
  std::vector<uint32_t> entries(shape.page_entries(), 17);
  std::vector<std::byte> block(512);
  encode_checksum_page(shape, 2, entries, block);
  EXPECT_TRUE(decode_checksum_page(shape, 2, block, entries));
  EXPECT_FALSE(decode_checksum_page(shape, 3, block, entries));
  for (size_t i = 0; i < block.size(); ++i) {
    std::vector<std::byte> bad = block;
    bad[i] ^= std::byte{8};
    EXPECT_FALSE(decode_checksum_page(shape, 2, bad, entries)) << i;
  }
  RegionSet regions(shape.regions());
  regions.add(1);
  encode_checksum_bitmap(shape, regions, block);
  EXPECT_TRUE(decode_checksum_bitmap(shape, block));
  for (size_t i = 0; i < block.size(); ++i) {
    std::vector<std::byte> bad = block;
    bad[i] ^= std::byte{8};
    EXPECT_FALSE(decode_checksum_bitmap(shape, bad)) << i;
  }
  Label label{.id = shape.id, .generation = 1, .blocks = 1000, .block_size = 512, .body = {}};
  label.body = encode_checksum_body(shape);
  EXPECT_TRUE(decode_checksum_body(label));
  label.body[0] ^= std::byte{1};
  EXPECT_FALSE(decode_checksum_body(label));
  label.body.clear();
  EXPECT_FALSE(decode_checksum_body(label));
}

}  // namespace
}  // namespace cairn::drive
