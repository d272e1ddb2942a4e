// SPDX-License-Identifier: Apache-2.0
// Drives below that forget what was not flushed. Under load, and of boxes:
// tests/stack/boxes_test.cc.
#include "drive/losses.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "service/common/journal.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "testing/stack/files.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

TEST(Losses, AreToldOnceToAllWhoseFlushHadBegun) {
  Losses losses;
  const uint64_t before = losses.told();
  EXPECT_TRUE(losses.tell(losses.told(), {}).has_value());
  losses.flushed(fail(Errc::kIo, "flush"));
  const uint64_t between = losses.told();
  EXPECT_EQ(losses.tell(before, {}).error().code(), Errc::kIo);
  EXPECT_EQ(losses.tell(between, {}).error().code(), Errc::kIo);
  EXPECT_TRUE(losses.tell(losses.told(), {}).has_value());
}

struct Entry {
  uint64_t key;
  uint64_t value;
};

class Table final : public JournalOwner {
 public:
  Result<void> replay(Bytes record) override {
    const auto entry = load<Entry>(record);
    values[entry.key] = entry.value;
    return {};
  }
  std::optional<uint64_t> save(uint64_t, JournalRecords& records) const override {
    for (const auto& [key, value] : values) records.add(Entry{key, value});
    return std::nullopt;
  }
  Entry set(uint64_t key, uint64_t value) {
    values[key] = value;
    return {key, value};
  }
  std::map<uint64_t, uint64_t> values;
};

task::Task<Result<void>> sync(Journal& journal) { co_return co_await journal.sync(); }

// Data that the flush should have covered may be gone: no record that points to it is committed.
SIM_TEST(Losses, KeepAJournalFromRecordsWhoseDataIsGone) {
  sim::Medium& disk = cluster.node("host").disk("d");
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "file:d,size=1M", leaves);
  constexpr JournalArea kArea{.first = 3, .blocks = 21};
  Table table;
  auto made = co_await Journal::create(env, *drive, kArea, {1, 2}, table);
  CO_ASSERT_TRUE(made.has_value());
  Journal& journal = **made;
  journal.add(table.set(1, 10), Journal::Needs::kData);
  Result<void> done = co_await journal.commit();
  EXPECT_TRUE(done.has_value());

  co_await write_value(*drive, 100, 7);
  journal.add(table.set(1, 20), Journal::Needs::kData);
  disk.fail_flushes();
  const auto [one, other] = co_await task::when_all(sync(journal), sync(journal));
  EXPECT_FALSE(one.has_value());
  EXPECT_FALSE(other.has_value());
  disk.heal();
  EXPECT_TRUE(journal.has_lost());
  done = co_await journal.commit();
  EXPECT_FALSE(done.has_value());

  // The first flush after a loss that a disk told already succeeds.
  table.values.clear();
  done = co_await journal.reload();
  EXPECT_TRUE(done.has_value());
  EXPECT_EQ(table.values, (std::map<uint64_t, uint64_t>{{1, 10}}));
  journal.add(table.set(2, 30), Journal::Needs::kData);
  done = co_await journal.commit();
  EXPECT_TRUE(done.has_value());
  co_await journal.close();

  Table again;
  auto opened = co_await Journal::open(env, *drive, kArea, {1, 2}, again);
  CO_ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(again.values, (std::map<uint64_t, uint64_t>{{1, 10}, {2, 30}}));
  co_await (*opened)->close();
  co_await drive->close();
}

task::Task<void> fail_a_flush_of_zeroes(env::Env& env, sim::Medium& disk, std::string stack) {
  LeavesWithFiles leaves({{"drive.key", testing_key(1)}});
  const std::unique_ptr<Drive> drive = co_await must_open(env, stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await write_value(*drive, 1, 7);
  co_await write_value(*drive, 2, 7);
  disk.fail_flushes();
  const Request zeroes{
      .kind = Request::Kind::kWriteZeroes, .durable = true, .lba = Lba(2), .blocks = 1};
  Result<void> done = co_await drive->submit(zeroes, {});
  EXPECT_FALSE(done.has_value()) << stack;
  disk.heal();
  done = co_await drive->flush();
  EXPECT_FALSE(done.has_value()) << stack;
  done = co_await drive->flush();
  EXPECT_TRUE(done.has_value()) << stack;
  co_await drive->close();
}

// A file's durable zeroes are flushed; whoever flushes next hears that others' writes went with it.
TEST(Losses, OfAFlushThatNobodyAskedForAreToldByTheNextFlush) {
  for (const char* stack : {"file:d,size=4M", "encrypt(file:d,size=4M, key=drive.key)",
                            "checksum(file:d,size=4M)", "thin(file:d,size=4M)"}) {
    sim::Cluster cluster;
    sim::Medium& disk = cluster.node("host").disk("d");
    run_in_sim(cluster, [&](env::Env& env) { return fail_a_flush_of_zeroes(env, disk, stack); });
  }
}

}  // namespace
}  // namespace cairn::drive
