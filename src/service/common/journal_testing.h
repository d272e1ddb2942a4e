// SPDX-License-Identifier: Apache-2.0
// What tests of journals share.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "service/common/journal.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {

inline constexpr JournalId kJournalId = {0x1111, 0x2222};
inline constexpr JournalArea kJournalArea{.first = 3, .blocks = 21};

// A table of keys; the record that set each is its number.
class JournalTable final : public JournalOwner {
 public:
  struct Record {
    uint64_t key;
    uint64_t number;
  };
  Result<void> replay(Bytes record) override {
    if (record.size() != sizeof(Record)) return fail(Errc::kCorrupt, "a record of another size");
    const auto one = load<Record>(record);
    values[one.key] = one.number;
    last = std::max(last, one.number);
    return {};
  }
  std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const override {
    ++saves;
    auto next = values.lower_bound(from);
    for (uint64_t i = 0; i < kPart && next != values.end(); ++i, ++next) {
      records.add(Record{next->first, next->second});
    }
    largest = std::max(largest, records.size());
    return next == values.end() ? std::nullopt : std::optional(next->first);
  }
  Record set(uint64_t key) {
    values[key] = ++last;
    return {key, last};
  }
  static constexpr uint64_t kPart = 64;
  std::map<uint64_t, uint64_t> values;
  uint64_t last = 0;
  mutable uint64_t saves = 0;
  mutable size_t largest = 0;  // what was asked to be held at once
};

inline task::Task<std::unique_ptr<Journal>> must(
    task::Task<Result<std::unique_ptr<Journal>>> opening) {
  Result<std::unique_ptr<Journal>> journal = co_await opening;
  if (!journal) ADD_FAILURE() << journal.error().text();
  co_return journal ? std::move(*journal) : nullptr;
}
inline task::Task<Errc> refusal(env::Env& env, Drive& drive, JournalArea area = kJournalArea,
                                JournalId id = kJournalId) {
  JournalTable table;
  Result<std::unique_ptr<Journal>> journal = co_await Journal::open(env, drive, area, id, table);
  if (!journal) co_return journal.error().code();
  co_await (*journal)->close();
  co_return Errc{};
}
// A journal of many records on a drive, closed; the table that was saved.
inline task::Task<JournalTable> fill(env::Env& env, Drive& drive, uint64_t records) {
  JournalTable table;
  auto journal = co_await must(Journal::create(env, drive, kJournalArea, kJournalId, table));
  for (uint64_t i = 0; i < records; ++i) {
    const JournalTable::Record record = table.set(env.rng().below(100));
    journal->add(record, Journal::Needs::kNothing);
    if (env.rng().bernoulli(0.3)) {
      EXPECT_TRUE((co_await journal->commit()).has_value());
    }
  }
  co_await journal->close();
  co_return table;
}
inline task::Task<void> flip(Drive& drive, uint64_t block) {
  std::vector<std::byte> bytes(drive.geometry().block_size);
  EXPECT_TRUE((co_await drive.read(Lba(block), bytes)).has_value());
  bytes[100] ^= std::byte{4};
  EXPECT_TRUE((co_await drive.write(Lba(block), bytes)).has_value());
}

inline task::Task<void> append(Journal& journal, JournalTable::Record record) {
  journal.add(record, Journal::Needs::kNothing);
  const Result<void> done = co_await journal.commit();
  EXPECT_TRUE(done.has_value());
}

}  // namespace cairn::drive
