// SPDX-License-Identifier: Apache-2.0
// Batches: all or nothing, under conditions, in one order.
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meta/suite.h"
#include "task/when_all.h"

namespace cairn::meta_tests {
namespace {

META_TEST_SUITE(Commits);

// "done", or which precondition failed.
Task<std::string> fate(Store& store, Batch batch) {
  const Committed committed = co_await sure(store.commit(std::move(batch)));
  co_return committed.done() ? "done" : std::to_string(*committed.failed);
}

META_TEST(Commits, WritesOfABatchShareARevision) {
  co_await put(place.store(), "gone", "1");
  Batch batch;
  batch.put("a", "1").put("b", "2").remove("gone");
  const Committed committed = co_await sure(place.store().commit(batch));
  const std::vector<Entry> all = co_await entries(place.client(1), Range::all());
  EXPECT_EQ(all.size(), 2U);
  for (const Entry& entry : all) EXPECT_EQ(entry.modified, committed.revision);
}

META_TEST(Commits, EachOneIsTheNextRevision) {
  Revision last = co_await put(place.store(), "a", "0");
  for (int i = 1; i < 10; ++i) {
    const Revision revision = co_await put(place.client(i % 2), "a", std::to_string(i));
    EXPECT_EQ(revision, meta::next(last));
    last = revision;
  }
}

META_TEST(Commits, EveryPreconditionHoldsOrFails) {
  Store& store = place.store();
  const Revision created = co_await put(store, "a", "1");
  const Revision modified = co_await put(store, "a", "2");
  const std::vector<std::pair<Batch, std::string>> cases = {
      {Batch().if_absent("b"), "done"},
      {Batch().if_absent("a"), "0"},
      {Batch().if_modified("a", modified), "done"},
      {Batch().if_modified("a", created), "0"},
      {Batch().if_modified("b", modified), "0"},
      {Batch().if_created("a", created), "done"},
      {Batch().if_created("a", modified), "0"},
      {Batch().if_created("b", created), "0"},
      {Batch().if_value("a", "2"), "done"},
      {Batch().if_value("a", ""), "0"},
      {Batch().if_value("b", ""), "0"},
      {Batch().if_value("a", "2").if_absent("b").if_absent("a").if_absent("a"), "2"},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string found = co_await fate(store, cases[i].first);
    EXPECT_EQ(found, cases[i].second) << "case " << i;
  }
}

META_TEST(Commits, RefusedBatchWritesNothing) {
  Store& store = place.store();
  const Revision before = co_await put(store, "a", "1");
  Batch batch;
  batch.if_value("a", "1").if_absent("a").put("b", "1").remove("a");
  const Committed committed = co_await sure(store.commit(batch));
  EXPECT_EQ(committed.failed, 1U);
  EXPECT_EQ(committed.revision, before);
  const std::string all = co_await keys(store, Range::all());
  EXPECT_EQ(all, "a");
}

META_TEST(Commits, WhatChangesNothingMakesNoRevision) {
  Store& store = place.store();
  const Revision before = co_await put(store, "a", "1");
  const Revision after = co_await remove(store, "b");
  EXPECT_EQ(after, before);
  const Committed empty = co_await sure(store.commit({}));
  EXPECT_EQ(empty.revision, before);
  EXPECT_TRUE(empty.done());
}

META_TEST(Commits, WhatBreaksALimitIsInvalidAndWritesNothing) {
  Store& store = place.store();
  const Revision before = co_await put(store, "a", "1");
  Batch many;
  for (size_t i = 0; i <= meta::kBatchWritesMax; ++i) many.put(std::to_string(i), "");
  Batch many_conditions;
  for (size_t i = 0; i <= meta::kBatchWritesMax; ++i) many_conditions.if_absent("b");
  Batch long_batch;
  for (int i = 0; i < 17; ++i) long_batch.put(std::to_string(i), std::string(64_KiB, 'x'));
  const std::vector<Batch> wrong = {
      many,
      many_conditions,
      long_batch,
      Batch().put("a", "1").put("b", "").put("a", "2"),
      Batch().put("a", "1").remove("a"),
      Batch().put("", "1"),
      Batch().if_absent("").put("b", "1"),
      Batch().put(std::string(meta::kKeyMax + 1, 'k'), "1"),
      Batch().put("b", std::string(meta::kValueMax + 1, 'v')),
      Batch().if_modified("a", Revision()).put("b", "1"),
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    const Result<Committed> refused = co_await store.commit(wrong[i]);
    EXPECT_EQ(outcome(refused), "invalid") << "case " << i;
  }
  const Page page = co_await sure(store.list({.range = Range::all()}));
  EXPECT_EQ(page.revision, before);
}

META_TEST(Commits, TheLargestBatchIsTaken) {
  Batch batch;
  for (size_t i = 0; i < meta::kBatchWritesMax; ++i) {
    batch.put(std::to_string(1000 + i), std::string(8000, 'x'));
    batch.if_absent(std::to_string(1000 + i));
  }
  const Committed committed = co_await sure(place.store().commit(batch));
  EXPECT_TRUE(committed.done());
  const std::vector<Entry> all = co_await entries(place.store(), Range::all());
  EXPECT_EQ(all.size(), meta::kBatchWritesMax);
}

Task<void> count_up(Store& store, int times) {
  for (int done = 0; done < times;) {
    const std::optional<Entry> counter = co_await sure(store.get("counter"));
    Batch batch;
    if (counter) {
      batch.if_modified("counter", counter->modified);
      batch.put("counter", std::to_string(std::stoi(counter->value) + 1));
    } else {
      batch.if_absent("counter").put("counter", "1");
    }
    const Committed committed = co_await sure(store.commit(batch));
    if (committed.done()) ++done;
  }
}

META_TEST(Commits, RacingClientsCountEveryStepOnce) {
  std::vector<Task<void>> racers;
  for (size_t i = 0; i < 4; ++i) racers.push_back(count_up(place.client(i % 2), 10));
  co_await task::when_all(std::move(racers));
  const std::string value = co_await value_of(place.store(), "counter");
  EXPECT_EQ(value, "40");
}

}  // namespace
}  // namespace cairn::meta_tests
