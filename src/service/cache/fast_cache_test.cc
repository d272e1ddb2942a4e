// SPDX-License-Identifier: Apache-2.0
#include "service/cache/fast_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr std::string_view kBack = "cache(file:slow,size=4M, file:fast,size=2M, mode=back)";
constexpr uint64_t kDataOffset = 64_KiB;

bool slow_holds(sim::Cluster& cluster, uint64_t block, uint8_t value) {
  std::vector<std::byte> found(4096);
  cluster.node("host").disk("slow").peek(kDataOffset + block * 4096, found);
  return found == blocks_of(value, 1);
}

SIM_TEST(FastCache, WritesBackWhenTold) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::string(kBack), leaves);
  const std::vector<std::byte> data = blocks_of(7, 4);
  const Result<void> written = co_await drive->write(Lba(110), data);
  EXPECT_TRUE(written);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  EXPECT_TRUE(slow_holds(cluster, 110, 0));  // a flush makes the fast drive durable
  EXPECT_EQ(fact(*drive, "lines_dirty"), 2U);
  const auto told = co_await drive->tell({"flush"});
  EXPECT_EQ(told.value_or(told.error()), "2 lines written back, 0 are dirty again");
  EXPECT_TRUE(slow_holds(cluster, 110, 7) && slow_holds(cluster, 113, 7));
  const auto wrong = co_await drive->tell({"drain"});
  EXPECT_FALSE(wrong);
  co_await drive->close();
}

SIM_TEST(FastCache, KeepsWhatWasReadAndWrittenThrough) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "cache(file:slow,size=4M, file:fast,size=2M, mode=through)", leaves);
  std::vector<std::byte> memory = blocks_of(0, 8);
  for (int i = 0; i < 3; ++i) {
    const Result<void> read = co_await drive->read(Lba(12), memory);  // of two lines
    EXPECT_TRUE(read);
    // Whoever writes there waits until they are kept.
    const Result<void> written = co_await drive->write(Lba(12), Bytes(memory).first(4096));
    EXPECT_TRUE(written);
  }
  EXPECT_EQ(fact(*drive, "misses"), 8U);
  EXPECT_EQ(fact(*drive, "hits"), 16U);
  EXPECT_EQ(fact(*drive, "lines_dirty"), 0U);
  co_await drive->close();
}

task::Task<void> write_one(env::Env& env, std::string stack) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::move(stack), leaves);
  const std::vector<std::byte> data = blocks_of(7, 1);
  const Result<void> written = co_await drive->write(Lba(0), data);
  EXPECT_TRUE(written);
  co_await drive->close();
}

task::Task<void> expect_refused(env::Env& env, std::string stack, std::string_view because) {
  SourceLeaves leaves;
  const std::string why = co_await why_not(env, std::move(stack), leaves);
  EXPECT_TRUE(why.find(because) != std::string::npos) << why;
}

SIM_TEST(FastCache, DrivesThatDoNotBelongTogetherAreRefused) {
  co_await write_one(env, std::string(kBack));
  std::vector<std::byte> before(2_MiB);
  cluster.node("host").disk("fast").peek(0, before);
  // Newer data is on the fast drive only.
  co_await expect_refused(env, "cache(file:slow, file:blank,size=2M)", "may have newer data");
  co_await expect_refused(env, "cache(file:new,size=4M, file:fast)", "belongs to another one");
  co_await expect_refused(env, "mirror(file:slow, file:new)", "holds something else");
  co_await expect_refused(env, "cache(file:slow, file:slow2,size=64K)", "may have newer data");
  // The fast drive as it was before the two were used once more.
  co_await write_one(env, std::string(kBack));
  co_await write_one(env, std::string(kBack));
  cluster.node("host").disk("fast").poke(0, before);
  co_await expect_refused(env, std::string(kBack), "of another time");
  co_await expect_refused(env, "cache(file:a,size=4M, file:b,size=64K)", "too small");
  co_await expect_refused(env, "cache(mem:size=4M, mem:size=4M,block=512)", "block");
  co_await expect_refused(env, "cache(mem:size=4M, mem:size=4M, mode=best)", "through or back");
}

SIM_TEST(FastCache, ADrainedSlowDriveTakesANewFastOne) {
  co_await write_one(env, "cache(file:slow,size=4M, file:fast,size=2M, mode=back, drain=yes)");
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "cache(file:slow, file:other,size=1M, mode=back)", leaves);
  std::vector<std::byte> memory = blocks_of(0, 1);
  const Result<void> read = co_await drive->read(Lba(0), memory);
  EXPECT_TRUE(read && memory == blocks_of(7, 1));
  co_await drive->close();
  drive.reset();
  leaves.close();
  co_await expect_refused(env, std::string(kBack), "of another time");
}

TEST(FastCacheFormat, RecordsThatCannotBeAreRefused) {
  const FastState fast{.slots = 10, .line_blocks = 16};
  const SlowState slow{.data_blocks = 40};
  const auto decode = [&](const FastRecord& record) {
    return decode_fast_record(Bytes(reinterpret_cast<const std::byte*>(&record), sizeof record),
                              fast, slow);
  };
  EXPECT_TRUE(decode({.line = 2, .dirty = 0xff, .slot = 9}));
  EXPECT_FALSE(decode({.line = 2, .dirty = 0x1ff, .slot = 9}));  // past the end of the drive
  EXPECT_FALSE(decode({.line = 1, .dirty = 0x10000, .slot = 9}));
  EXPECT_FALSE(decode({.line = 3, .dirty = 1, .slot = 9}));
  EXPECT_FALSE(decode({.line = UINT64_MAX, .dirty = 1, .slot = 9}));
  EXPECT_FALSE(decode({.line = 0, .dirty = 1, .slot = 10}));
  EXPECT_FALSE(decode_fast_record({}, fast, slow));
}

}  // namespace
}  // namespace cairn::drive
