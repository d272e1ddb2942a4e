// SPDX-License-Identifier: Apache-2.0
#include "service/common/journal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "service/common/journal_testing.h"
#include "service/common/space.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::drive {
namespace {

task::Task<void> replay_on(env::Env& env, std::string drive_text) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, drive_text, leaves);
  const JournalTable table = co_await fill(env, *drive, 30'000);
  JournalTable again;
  auto journal = co_await must(Journal::open(env, *drive, kJournalArea, kJournalId, again));
  EXPECT_EQ(again.values, table.values);
  EXPECT_GT(journal->generation(), 10u);
  co_await journal->close();
  co_await drive->close();
}

TEST(JournalOnDrive, ReplaysWhatWasAdded) {
  for (const char* drive_text : {"mem:size=1M", "mem:size=1M,block=512"}) {
    run_in_sim([&](env::Env& env) { return replay_on(env, drive_text); });
  }
}

// Whoever reads it while another one writes has an old state: it must not go on with that.
SIM_TEST(JournalOnDrive, IsNotOwnedByWhoReadLessThanThereIs) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=1M", leaves);
  Label label = new_label(env, *drive);
  Claim claim(env, *drive, label);
  JournalTable table = co_await fill(env, *drive, 100);
  auto writes = co_await must(Journal::open(env, *drive, kJournalArea, kJournalId, table));
  for (int i = 0; i < 100; ++i) {
    JournalTable other;
    auto reads = co_await must(Journal::open(env, *drive, kJournalArea, kJournalId, other));
    EXPECT_TRUE((co_await reads->own(claim)).has_value()) << i;
    co_await append(*writes, table.set(1));
    const Result<void> owned = co_await reads->own(claim);
    CO_ASSERT_TRUE(!owned.has_value());
    EXPECT_EQ(owned.error().text(), changed_meanwhile().text()) << i;
  }
  EXPECT_GT(writes->generation(), 3u) << "checkpoints were among it";
  co_await writes->close();
  co_await drive->close();
}

// The first goes alone, the others wait meanwhile and go together: a block each would fill the half
// that has ten of them many times over.
SIM_TEST(JournalOnDrive, WritesTogetherWhatComesTogether) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "file:d,size=1M", leaves);
  JournalTable table;
  auto journal = co_await must(Journal::create(env, *drive, kJournalArea, kJournalId, table));
  std::vector<task::Task<void>> appends;
  for (uint64_t i = 0; i < 300; ++i) appends.push_back(append(*journal, table.set(i)));
  co_await task::when_all(std::move(appends));
  EXPECT_EQ(journal->durable(), 300u);
  EXPECT_EQ(journal->generation(), 1u);
  co_await journal->close();
  co_await drive->close();
}

SIM_TEST(JournalOnDrive, RefusesWhatIsNotItsOwn) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=1M", leaves);
  EXPECT_EQ(co_await refusal(env, *drive), Errc::kCorrupt);
  co_await fill(env, *drive, 100);
  EXPECT_EQ(co_await refusal(env, *drive), Errc{});
  EXPECT_EQ(co_await refusal(env, *drive, kJournalArea, {0x1111, 0x2223}), Errc::kCorrupt);
  EXPECT_EQ(co_await refusal(env, *drive, {.first = 4, .blocks = 21}), Errc::kCorrupt);
  EXPECT_EQ(co_await refusal(env, *drive, {.first = 250, .blocks = 21}), Errc::kInvalid);
  EXPECT_EQ(co_await refusal(env, *drive, {.first = 3, .blocks = 3}), Errc::kInvalid);
  co_await drive->close();
}

// A damaged block is a torn tail when nothing was written after it, and damage otherwise.
SIM_TEST(JournalOnDrive, TellsDamageFromATornTail) {
  SourceLeaves leaves;
  for (uint64_t block = 0; block < 5; ++block) {
    const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=1M", leaves);
    JournalTable table;
    auto journal = co_await must(Journal::create(env, *drive, kJournalArea, kJournalId, table));
    for (int i = 0; i < 4; ++i) {
      const JournalTable::Record record = table.set(static_cast<uint64_t>(i));
      journal->add(record, Journal::Needs::kNothing);
      EXPECT_TRUE((co_await journal->commit()).has_value());
    }
    co_await journal->close();
    // The first generation is in the second half: its checkpoint, then a block for each record.
    co_await flip(*drive, kJournalArea.first + kJournalArea.blocks / 2 + block);
    EXPECT_EQ(co_await refusal(env, *drive), block < 4 ? Errc::kCorrupt : Errc{}) << block;
    co_await drive->close();
  }
}

SIM_TEST(JournalOnDrive, GoesOnAfterAWriteThatFailed) {
  sim::Medium& disk = cluster.node("host").disk("d");
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "file:d,size=1M", leaves);
  JournalTable table;
  auto journal = co_await must(Journal::create(env, *drive, kJournalArea, kJournalId, table));
  for (uint64_t i = 0; i < 200; ++i) {
    disk.heal();
    if (i % 3 == 0) disk.fail_writes();
    const JournalTable::Record record = table.set(i % 50);
    journal->add(record, Journal::Needs::kData);
    const Result<void> done = co_await journal->commit();
    EXPECT_EQ(done.has_value(), i % 3 != 0) << i;
  }
  co_await journal->close();
  JournalTable again;
  journal = co_await must(Journal::open(env, *drive, kJournalArea, kJournalId, again));
  EXPECT_EQ(again.values, table.values);
  co_await journal->close();
  co_await drive->close();
}

SIM_TEST(JournalOnDrive, AreaHoldsTheStateItIsMadeFor) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=4M", leaves);
  for (const uint64_t records : {1u, 250u, 5000u}) {
    const JournalArea area{
        .first = 2, .blocks = Journal::blocks_for(records, sizeof(JournalTable::Record), 4096)};
    JournalTable table;
    auto journal = co_await must(Journal::create(env, *drive, area, kJournalId, table));
    for (uint64_t i = 0; i < 3 * records; ++i) {
      journal->add(table.set(i % records), Journal::Needs::kNothing);
    }
    EXPECT_TRUE((co_await journal->commit()).has_value()) << records;
    co_await journal->close();
  }
  co_await drive->close();
}

TEST(JournalBlock, ShowsEveryDamagedByte) {
  JournalRecords records;
  records.add(as_bytes("hello"));
  std::vector<std::byte> block(512);
  encode_journal_block({.id = kJournalId, .generation = 1, .kind = 2}, records.bytes(), block);
  ASSERT_TRUE(decode_journal_block(kJournalId, block));
  for (size_t i = 0; i < block.size(); ++i) {
    block[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode_journal_block(kJournalId, block)) << i;
    block[i] ^= std::byte{0x10};
  }
}

TEST(JournalBlock, TrustsNoLength) {
  Rng rng(3);
  for (int i = 0; i < 10'000; ++i) {
    std::vector<std::byte> bytes(rng.below(40));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(4));
    Bytes rest = bytes;
    while (const std::optional<Bytes> record = take_record(rest)) {
      ASSERT_LE(record->data() + record->size(), bytes.data() + bytes.size());
    }
  }
}

// Blocks that move to a new place with each change, as services over a journal keep them: through
// any crash each key's place holds what the record says, and what was promised is there.
class MovingBlocks {
 public:
  static constexpr uint64_t kKeys = 40;
  static constexpr uint64_t kFirst = 32;  // where the places begin
  struct Record {
    uint64_t key;
    uint64_t unit;
    uint64_t number;
    std::array<uint64_t, 29> more{};  // so that a checkpoint takes several blocks
  };

  struct State final : JournalOwner {
    Result<void> replay(Bytes record) override {
      if (record.size() != sizeof(Record)) return fail(Errc::kCorrupt, "a record of another size");
      const auto one = load<Record>(record);
      if (one.key >= kKeys) return fail(Errc::kCorrupt, "a key beyond the end");
      by_key[one.key] = one;
      last = std::max(last, one.number);
      return {};
    }
    std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const override {
      auto next = by_key.lower_bound(from);
      for (int i = 0; i < 7 && next != by_key.end(); ++i, ++next) records.add(next->second);
      return next == by_key.end() ? std::nullopt : std::optional(next->first);
    }
    std::map<uint64_t, Record> by_key;
    uint64_t last = 0;
  };

  task::Task<void> live(env::Env& env) {
    SourceLeaves leaves;
    const std::unique_ptr<Drive> drive = co_await must_open(env, "file:d,size=512K", leaves);
    if (drive == nullptr) co_return;
    State state;
    auto journal = is_new_ ? co_await Journal::create(env, *drive, kJournalArea, kJournalId, state)
                           : co_await Journal::open(env, *drive, kJournalArea, kJournalId, state);
    if (journal) {
      is_new_ = false;
      co_await check(*drive, state);
      if (failure.empty()) co_await change(env, *drive, state, **journal);
      co_await (*journal)->close();
    } else if (!env.stop_token().requested() && !is_new_) {
      failure = journal.error().text();
    }
    co_await drive->close();
  }

  std::string failure;
  uint64_t changes = 0;

 private:
  task::Task<void> check(Drive& drive, const State& state) {
    if (state.last < promised_) failure = fmt::format("{} of {}", state.last, promised_);
    std::vector<uint64_t> expected(kKeys);
    history_.resize(std::min<size_t>(history_.size(), state.last));
    for (const auto& [key, number] : history_) expected[key] = number;
    for (const auto& [key, record] : state.by_key) {
      if (expected[key] != record.number) failure = fmt::format("key {}", key);
      std::vector<std::byte> block(4096);
      const Result<void> done = co_await drive.read(Lba(kFirst + record.unit), block);
      if (done && load<uint64_t>(block) != record.number) {
        failure = fmt::format("key {}: place {} holds {}, not {}", key, record.unit,
                              load<uint64_t>(block), record.number);
      }
    }
    promised_ = state.last;
  }

  task::Task<void> change(env::Env& env, Drive& drive, State& state, Journal& journal) {
    Space space(64);
    for (const auto& [key, record] : state.by_key) EXPECT_TRUE(space.claim(record.unit));
    while (!env.stop_token().requested()) {
      while (const auto unit = space.come_back(journal.durable())) EXPECT_TRUE(space.give(*unit));
      const std::optional<uint64_t> unit = space.take();
      if (!unit || env.rng().bernoulli(0.1)) {
        if (unit) EXPECT_TRUE(space.give(*unit));
        const uint64_t last = state.last;
        const Result<void> done = co_await journal.commit();
        if (!done) co_return;
        promised_ = last;
        continue;
      }
      const uint64_t key = env.rng().below(kKeys);
      std::vector<std::byte> block(4096);
      store(MutableBytes(block), state.last + 1);
      const Result<void> done = co_await drive.write(Lba(kFirst + *unit), block);
      if (!done) co_return;
      const Record record{.key = key, .unit = *unit, .number = ++state.last};
      const auto old = state.by_key.find(key);
      const std::optional<uint64_t> left =
          old == state.by_key.end() ? std::nullopt : std::optional(old->second.unit);
      state.by_key[key] = record;
      const uint64_t number = journal.add(record, Journal::Needs::kData);
      if (left) EXPECT_TRUE(space.give_after(*left, number));
      history_.emplace_back(key, record.number);
      ++changes;
    }
  }

  bool is_new_ = true;
  uint64_t promised_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> history_;  // (key, number)
};

TEST(Journal, KeepsItsPromisesThroughPowerLosses) {
  for (const uint64_t seed : sim::seeds_to_run(4)) {
    MovingBlocks blocks;
    Rng rng(seed);
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&blocks](env::Env& env) { return blocks.live(env); });
    for (int life = 0; life < 250 && blocks.failure.empty(); ++life) {
      // Now and then long enough for several checkpoints.
      const uint64_t max = rng.bernoulli(0.3) ? 20'000'000 : 1'000'000;
      cluster.run_for(Duration{static_cast<int64_t>(rng.below(max))});
      node.crash();
      node.restart();
    }
    EXPECT_EQ(blocks.failure, "") << cluster.report();
    EXPECT_GT(blocks.changes, 5'000u);
  }
}

}  // namespace
}  // namespace cairn::drive
