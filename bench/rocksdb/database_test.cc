// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/database.h"

#include <gtest/gtest.h>

#include "bench/rocksdb/memory_store_testing.h"

namespace cairn::bench {
namespace {

constexpr DatabaseLoad kLoad{.keys = 20'000, .reads = 4'000, .threads = 4};

TEST(Database, FindsItsValuesAgainWhenItIsOpenedAgain) {
  MemoryStore store(128_MiB);
  FlatFiles files(store);
  {
    const Result<std::unique_ptr<Database>> database = Database::open(files, kLoad);
    ASSERT_TRUE(database);
    ASSERT_TRUE((*database)->fill_random());
    ASSERT_TRUE((*database)->compact());
  }
  EXPECT_FALSE(files.list("/db").empty());
  const Result<std::unique_ptr<Database>> again = Database::open(files, kLoad);
  ASSERT_TRUE(again);
  EXPECT_TRUE((*again)->read_random());
  EXPECT_TRUE((*again)->multi_read_random());
  EXPECT_TRUE((*again)->read_while_writing());
}

TEST(Database, NoticesValuesThatAreNotItsOwn) {
  MemoryStore store(128_MiB);
  FlatFiles files(store);
  {
    const Result<std::unique_ptr<Database>> database = Database::open(files, kLoad);
    ASSERT_TRUE(database);
    ASSERT_TRUE((*database)->fill_random());
  }
  DatabaseLoad other = kLoad;
  other.value_size = 300;
  const Result<std::unique_ptr<Database>> again = Database::open(files, other);
  ASSERT_TRUE(again);
  for (const Result<void>& read : {(*again)->read_random(), (*again)->multi_read_random()}) {
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error(), Errc::kCorrupt);
  }
}

TEST(Database, ADriveThatFailsIsReported) {
  MemoryStore store(128_MiB);
  FlatFiles files(store);
  const Result<std::unique_ptr<Database>> database = Database::open(files, kLoad);
  ASSERT_TRUE(database);
  store.fails = true;
  const Result<void> filled = (*database)->fill_random();
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error(), Errc::kIo);
}

}  // namespace
}  // namespace cairn::bench
