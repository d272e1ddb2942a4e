// SPDX-License-Identifier: Apache-2.0
// Checkpoints that take many writes, while changes go on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "service/common/journal.h"
#include "service/common/journal_testing.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::drive {
namespace {

// A table whose checkpoint takes many writes, in an area like those of services.
constexpr uint64_t kKeys = 20'000;
JournalArea area_for(uint64_t keys, uint32_t block_size) {
  return {.first = 2,
          .blocks = Journal::blocks_for(keys, sizeof(JournalTable::Record), block_size)};
}
void fill_table(JournalTable& table, uint64_t keys) {
  for (uint64_t key = 0; key < keys; ++key) table.set(key);
}
// Changes until a checkpoint is on its way.
task::Task<void> reach_checkpoint(env::Env& env, Journal& journal, JournalTable& table) {
  for (int i = 0; i < 2'000 && !journal.is_saving(); ++i) {
    co_await append(journal, table.set(env.rng().below(kKeys)));
  }
  EXPECT_TRUE(journal.is_saving());
}
task::Task<void> expect_same(env::Env& env, Drive& drive, JournalArea area,
                             const JournalTable& table) {
  JournalTable again;
  auto journal = co_await must(Journal::open(env, drive, area, kJournalId, again));
  EXPECT_EQ(again.values, table.values);
  if (journal != nullptr) co_await journal->close();
}

SIM_TEST(JournalOfMany, CommitsGoOnWhileACheckpointIsWritten) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "file:d,size=16M", leaves);
  const JournalArea area = area_for(5 * kKeys, 4096);
  JournalTable table;
  fill_table(table, 5 * kKeys);
  auto journal = co_await must(Journal::create(env, *drive, area, kJournalId, table));
  for (int round = 0; round < 3; ++round) {
    co_await reach_checkpoint(env, *journal, table);
    const uint64_t generation = journal->generation();
    const Time saved_since = env.now();
    int meanwhile = 0;
    Duration slowest{};
    for (; journal->generation() == generation; ++meanwhile) {
      const Time begun = env.now();
      const Result<void> synced = co_await journal->sync();
      EXPECT_TRUE(synced.has_value());
      co_await append(*journal, table.set(env.rng().below(kKeys)));
      slowest = std::max(slowest, env.now() - begun);
    }
    EXPECT_GT(meanwhile, 5) << round;
    EXPECT_LT(slowest * 4, env.now() - saved_since) << round;
  }
  co_await journal->close();
  co_await expect_same(env, *drive, area, table);
  co_await drive->close();
}

task::Task<void> save_table_of(env::Env& env, uint64_t keys) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=64M", leaves);
  const JournalArea area = area_for(keys, 4096);
  JournalTable table;
  fill_table(table, keys);
  auto journal = co_await must(Journal::create(env, *drive, area, kJournalId, table));
  const uint64_t at_first = table.saves;
  EXPECT_GE(at_first, keys / JournalTable::kPart);
  co_await reach_checkpoint(env, *journal, table);
  while (journal->generation() == 1) co_await append(*journal, table.set(1));
  EXPECT_GE(table.saves, 2 * at_first);
  EXPECT_LT(table.largest, 3u * 65536);
  co_await journal->close();
  co_await drive->close();
}

TEST(JournalOfMany, CheckpointTakesBoundedMemory) {
  for (const uint64_t keys : {kKeys, 10 * kKeys}) {
    run_in_sim([&](env::Env& env) { return save_table_of(env, keys); });
  }
}

// More changes during a checkpoint than its half has room for, at one instant and with nobody
// waiting.
SIM_TEST(JournalOfMany, CheckpointEndsWhateverIsChangedMeanwhile) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "file:d,size=4M", leaves);
  const JournalArea area = area_for(kKeys, 4096);
  JournalTable table;
  fill_table(table, kKeys);
  auto journal = co_await must(Journal::create(env, *drive, area, kJournalId, table));
  for (const uint64_t changes : {5'000u, 20'000u, 80'000u}) {
    co_await reach_checkpoint(env, *journal, table);
    for (uint64_t i = 0; i < changes; ++i) {
      journal->add(table.set(env.rng().below(kKeys)), Journal::Needs::kNothing);
    }
    const uint64_t generation = journal->generation();
    for (int i = 0; i < 1'000 && journal->generation() == generation; ++i) {
      co_await append(*journal, table.set(1));
    }
    EXPECT_GT(journal->generation(), generation) << changes;
  }
  co_await journal->close();
  co_await expect_same(env, *drive, area, table);
  co_await drive->close();
}

// Whoever has read a part of a checkpoint that is whole by now knows an old state.
SIM_TEST(JournalOfMany, IsNotOwnedByWhoReadAPartOfACheckpoint) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "file:d,size=4M", leaves);
  Label label = new_label(env, *drive);
  Claim claim(env, *drive, label);
  const JournalArea area = area_for(kKeys, 4096);
  JournalTable table;
  fill_table(table, kKeys);
  auto writes = co_await must(Journal::create(env, *drive, area, kJournalId, table));
  co_await reach_checkpoint(env, *writes, table);
  // The first part, whose block says that it was begun, is there; the commit that ends it not.
  EXPECT_TRUE((co_await drive->flush()).has_value());
  JournalTable other;
  auto reads = co_await must(Journal::open(env, *drive, area, kJournalId, other));
  EXPECT_EQ(reads->generation(), writes->generation());
  EXPECT_TRUE((co_await reads->own(claim)).has_value());
  co_await append(*writes, table.set(1));
  EXPECT_GT(writes->generation(), reads->generation());
  const Result<void> owned = co_await reads->own(claim);
  CO_ASSERT_TRUE(!owned.has_value());
  EXPECT_EQ(owned.error().text(), changed_meanwhile().text());
  co_await reads->close();
  co_await writes->close();
  co_await drive->close();
}

// Appends from many tasks through several checkpoints of several parts each, until the test ends
// the program at one of its writes.
class ManyAppends {
 public:
  static constexpr uint64_t kKeys = 1000;
  static constexpr JournalArea kPlace{.first = 2, .blocks = 48};

  task::Task<void> live(env::Env& env) {
    SourceLeaves leaves;
    const std::unique_ptr<Drive> drive = co_await must_open(env, "file:d,size=512K", leaves);
    if (drive == nullptr) co_return;
    JournalTable table;
    auto journal = is_new_ ? co_await Journal::create(env, *drive, kPlace, kJournalId, table)
                           : co_await Journal::open(env, *drive, kPlace, kJournalId, table);
    if (journal) {
      is_new_ = false;
      check(table);
      generations = std::max(generations, (*journal)->generation());
      std::vector<task::Task<void>> tasks;
      for (int i = 0; i < 3; ++i) tasks.push_back(change(env, table, **journal));
      co_await task::when_all(std::move(tasks));
      co_await (*journal)->close();
    } else if (!env.stop_token().requested() && !is_new_) {
      failure = journal.error().text();
    }
    co_await drive->close();
  }

  std::string failure;
  uint64_t generations = 0;
  uint64_t while_saving = 0;  // commits
  bool stops_at_errors = true;

 private:
  // Exactly the changes up to one of them, and all that were promised.
  void check(const JournalTable& table) {
    if (table.last < promised_) failure = fmt::format("{} of {}", table.last, promised_);
    history_.resize(std::min<size_t>(history_.size(), table.last));
    std::map<uint64_t, uint64_t> expected;
    for (size_t i = 0; i < history_.size(); ++i) expected[history_[i]] = i + 1;
    if (table.values != expected) failure = fmt::format("not the state after {}", table.last);
  }
  task::Task<void> change(env::Env& env, JournalTable& table, Journal& journal) {
    while (!env.stop_token().requested() && failure.empty()) {
      for (uint64_t i = env.rng().below(6); i > 0; --i) {
        const JournalTable::Record record = table.set(env.rng().below(kKeys));
        history_.push_back(record.key);
        journal.add(record, Journal::Needs::kNothing);
      }
      const uint64_t last = table.last;
      const bool was_saving = journal.is_saving();
      const Result<void> done = co_await journal.commit();
      if (!done && stops_at_errors) co_return;
      if (!done) continue;
      promised_ = std::max(promised_, last);
      generations = std::max(generations, journal.generation());
      if (was_saving && journal.is_saving()) ++while_saving;
    }
  }

  bool is_new_ = true;
  uint64_t promised_ = 0;
  std::vector<uint64_t> history_;  // keys; the numbers count from 1
};

TEST(Journal, KeepsWhatWasCommittedThroughACrashAtEveryWrite) {
  uint64_t while_saving = 0;
  for (uint64_t crash_at = 1; crash_at < 400; ++crash_at) {
    ManyAppends appends;
    sim::Cluster cluster({.seed = crash_at % 7 + 1});
    sim::Node& node = cluster.node("host");
    uint64_t writes = 0;
    node.disk("d").set_judge([&writes](const env::DiskOp::Request& request) -> Result<void> {
      if (request.kind != env::DiskOp::Kind::kRead) ++writes;
      return {};
    });
    node.start([&appends](env::Env& env) { return appends.live(env); });
    ASSERT_TRUE(cluster.run_until([&] { return writes >= crash_at; }, 10_s));
    for (int life = 0; life < 3 && appends.failure.empty(); ++life) {
      node.crash();
      node.restart();
      cluster.run_for(1_ms);
    }
    ASSERT_EQ(appends.failure, "") << crash_at << cluster.report();
    if (crash_at > 300) ASSERT_GT(appends.generations, 3u);
    while_saving += appends.while_saving;
  }
  EXPECT_GT(while_saving, 500u) << "commits went on";
}

// Writes and flushes fail wherever they are; what failed was not promised, and is not mixed up.
TEST(Journal, KeepsWhatWasCommittedWhenAnyWriteFails) {
  for (const uint64_t seed : sim::seeds_to_run(20)) {
    ManyAppends appends;
    appends.stops_at_errors = false;
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    Rng rng(seed);
    node.disk("d").set_judge([&rng](const env::DiskOp::Request& request) -> Result<void> {
      if (request.kind != env::DiskOp::Kind::kWrite || !rng.bernoulli(0.05)) return {};
      return fail(Errc::kIo, "by the test");
    });
    node.start([&appends](env::Env& env) { return appends.live(env); });
    for (int life = 0; life < 30 && appends.failure.empty(); ++life) {
      cluster.run_for(Duration{static_cast<int64_t>(rng.below(20'000'000))});
      node.crash();
      node.restart();
    }
    ASSERT_EQ(appends.failure, "") << cluster.report();
    EXPECT_GT(appends.generations, 10u);
  }
}

}  // namespace
}  // namespace cairn::drive
