// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/flat_files.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "bench/rocksdb/memory_store_testing.h"

namespace cairn::bench {
namespace {

std::vector<std::byte> random_bytes(Rng& rng, size_t size) {
  std::vector<std::byte> bytes(size);
  rng.fill(bytes);
  return bytes;
}
std::vector<std::byte> read_at(const FlatFile& file, uint64_t offset, size_t length) {
  std::vector<std::byte> bytes(length);
  ReadPart part{offset, bytes};
  EXPECT_TRUE(file.read({&part, 1}));
  bytes.resize(part.got);
  return bytes;
}

TEST(FlatFiles, GiveBackWhatWasAppendedInWhateverPieces) {
  MemoryStore store(32_MiB);
  FlatFiles files(store);
  Rng rng(7);
  for (int round = 0; round < 20; ++round) {
    const std::shared_ptr<FlatFile> file = files.create("/db/a");
    std::vector<std::byte> expected;
    while (expected.size() < 3_MiB) {
      const std::vector<std::byte> piece =
          random_bytes(rng, rng.bernoulli(0.5) ? rng.below(5000) : rng.below(700'000));
      ASSERT_TRUE(file->append(piece));
      expected.insert(expected.end(), piece.begin(), piece.end());
      if (rng.bernoulli(0.2)) ASSERT_TRUE(file->sync());
      if (rng.bernoulli(0.1)) {
        expected.resize(rng.below(expected.size() + 1));
        ASSERT_TRUE(file->truncate(expected.size()));
      }
      ASSERT_EQ(file->size(), expected.size());
      const uint64_t offset = rng.below(expected.size() + 1);
      const size_t length = rng.below(400'000);
      const size_t there = std::min<size_t>(length, expected.size() - offset);
      ASSERT_EQ(
          read_at(*file, offset, length),
          std::vector<std::byte>(expected.begin() + offset, expected.begin() + offset + there));
    }
    EXPECT_EQ(read_at(**files.open("/db/a"), 0, expected.size() + 1), expected);
  }
}

TEST(FlatFiles, ManyPartsAreReadTogether) {
  MemoryStore store(4_MiB);
  FlatFiles files(store);
  Rng rng(3);
  const std::vector<std::byte> bytes = random_bytes(rng, 300'000);
  const std::shared_ptr<FlatFile> file = files.create("/a");
  ASSERT_TRUE(file->append(bytes));
  std::vector<std::byte> one(100);
  std::vector<std::byte> two(9000);
  std::vector<std::byte> beyond(10);
  ReadPart parts[] = {{5, one}, {295'000, two}, {300'000, beyond}};
  ASSERT_TRUE(file->read(parts));
  EXPECT_EQ(parts[0].got, 100U);
  EXPECT_EQ(parts[1].got, 5000U);
  EXPECT_EQ(parts[2].got, 0U);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), bytes.begin() + 5));
  EXPECT_TRUE(std::equal(two.begin(), two.begin() + 5000, bytes.begin() + 295'000));
}

TEST(FlatFiles, SpaceComesBackWithTheLastWhoHoldsAFile) {
  MemoryStore store(4_MiB);
  FlatFiles files(store);
  const std::vector<std::byte> bytes(3_MiB, std::byte{1});
  std::shared_ptr<FlatFile> file = files.create("/a");
  ASSERT_TRUE(file->append(bytes));
  EXPECT_EQ(files.free_extents(), 1U);
  ASSERT_TRUE(files.remove("/a"));
  EXPECT_EQ(files.free_extents(), 1U);
  EXPECT_EQ(read_at(*file, 0, bytes.size()), bytes);
  file.reset();
  EXPECT_EQ(files.free_extents(), 4U);
}

TEST(FlatFiles, AFullDriveRefusesAndKeepsWhatThereIs) {
  MemoryStore store(2_MiB);
  FlatFiles files(store);
  const std::shared_ptr<FlatFile> file = files.create("/a");
  const std::vector<std::byte> bytes(1_MiB, std::byte{1});
  ASSERT_TRUE(file->append(bytes));
  ASSERT_TRUE(file->append(bytes));
  const Result<void> refused = file->append(bytes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::kNoSpace);
  EXPECT_EQ(file->size(), 2_MiB);
  EXPECT_EQ(read_at(*file, 1_MiB, 1_MiB), bytes);
}

TEST(FlatFiles, ADriveThatFailsIsReported) {
  MemoryStore store(4_MiB);
  FlatFiles files(store);
  const std::shared_ptr<FlatFile> file = files.create("/a");
  const std::vector<std::byte> bytes(1_MiB, std::byte{1});
  ASSERT_TRUE(file->append(bytes));
  store.fails = true;
  EXPECT_FALSE(file->append(bytes));
  EXPECT_EQ(file->size(), 1_MiB);
  std::vector<std::byte> into(10);
  ReadPart part{0, into};
  EXPECT_FALSE(file->read({&part, 1}));
  store.fails = false;
  EXPECT_TRUE(file->append(bytes));
  EXPECT_EQ(read_at(*file, 0, 2_MiB).size(), 2_MiB);
  EXPECT_TRUE(file->sync());
  EXPECT_EQ(store.flushes, 1);
  EXPECT_EQ(file->truncate(3_MiB).error(), Errc::kInvalid);
}

TEST(FlatFiles, NamesAreKeptReplacedAndListed) {
  MemoryStore store(4_MiB);
  FlatFiles files(store);
  files.create("/db/b");
  files.create("/db/a");
  files.create("/db/sub/c");
  files.create("/dbx");
  EXPECT_EQ(files.list("/db"), (std::vector<std::string>{"a", "b", "sub"}));
  ASSERT_TRUE(files.open("/db/a").value()->append(std::vector<std::byte>(5)));
  ASSERT_TRUE(files.rename("/db/a", "/db/b"));
  EXPECT_FALSE(files.exists("/db/a"));
  EXPECT_EQ(files.open("/db/b").value()->size(), 5U);
  EXPECT_EQ(files.open("/db/a").error(), Errc::kNotFound);
  EXPECT_EQ(files.remove("/db/a").error(), Errc::kNotFound);
  EXPECT_EQ(files.rename("/db/a", "/db/c").error(), Errc::kNotFound);
  EXPECT_EQ(files.create("/db/b")->size(), 0U);
}

}  // namespace
}  // namespace cairn::bench
