// SPDX-License-Identifier: Apache-2.0
// Watches: every change of a range, in order, once.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meta/suite.h"
#include "task/cancel.h"
#include "task/when_all.h"

namespace cairn::meta_tests {
namespace {

META_TEST_SUITE(Watches);

using Texts = std::vector<std::string>;

META_TEST(Watches, SeeWhatComesAfterTheyWereMade) {
  co_await put(place.store(), "a", "before");
  const std::unique_ptr<Watch> watching = co_await watch(place.store(), Range::all());
  const Revision first = co_await put(place.client(1), "a", "1");
  co_await remove(place.client(1), "a");
  const std::vector<Change> changes = co_await take(*watching, 2);
  EXPECT_EQ(texts(changes), (Texts{"put a=1", "remove a"}));
  EXPECT_EQ(changes[0].revision, first);
  EXPECT_EQ(changes[1].revision, meta::next(first));
  co_await watching->close();
}

META_TEST(Watches, FromARevisionOnSeeWhatWasBefore) {
  const Revision first = co_await put(place.store(), "a", "1");
  const Revision second = co_await put(place.store(), "a", "2");
  co_await put(place.store(), "a", "3");
  const std::unique_ptr<Watch> all = co_await watch(place.store(), Range::all(), first);
  const std::vector<Change> three = co_await take(*all, 3);
  EXPECT_EQ(texts(three), (Texts{"put a=1", "put a=2", "put a=3"}));
  const std::unique_ptr<Watch> later = co_await watch(place.client(1), Range::all(), second);
  const std::vector<Change> two = co_await take(*later, 2);
  EXPECT_EQ(texts(two), (Texts{"put a=2", "put a=3"}));
  co_await all->close();
  co_await later->close();
}

META_TEST(Watches, AnotherOneGoesOnFromThePosition) {
  const Revision first = co_await put(place.store(), "a", "1");
  const std::unique_ptr<Watch> one = co_await watch(place.store(), Range::all(), first);
  const std::vector<Change> seen = co_await take(*one, 1);
  EXPECT_EQ(texts(seen), (Texts{"put a=1"}));
  const Revision position = one->position();
  co_await one->close();
  co_await put(place.store(), "a", "2");
  const std::unique_ptr<Watch> other = co_await watch(place.store(), Range::all(), position);
  const std::vector<Change> rest = co_await take(*other, 1);
  EXPECT_EQ(texts(rest), (Texts{"put a=2"}));
  co_await other->close();
}

META_TEST(Watches, MayBeginInTheFuture) {
  const Revision now = co_await put(place.store(), "a", "1");
  const std::unique_ptr<Watch> watching =
      co_await watch(place.store(), Range::all(), Revision(now.value() + 3));
  for (const char* value : {"2", "3", "4", "5"}) co_await put(place.store(), "a", value);
  const std::vector<Change> changes = co_await take(*watching, 2);
  EXPECT_EQ(texts(changes), (Texts{"put a=4", "put a=5"}));
  co_await watching->close();
}

META_TEST(Watches, SeeTheirRangeAlone) {
  const std::unique_ptr<Watch> watching = co_await watch(place.store(), Range::prefix("b/"));
  const std::unique_ptr<Watch> single = co_await watch(place.store(), Range::one("c"));
  Batch batch;
  batch.put("a", "1").put("b/2", "2").put("b/1", "1").put("b0", "1").put("c", "1").put("c/", "1");
  co_await sure(place.store().commit(batch));
  co_await put(place.store(), "b", "1");
  co_await put(place.store(), "b/3", "3");
  const std::vector<Change> changes = co_await take(*watching, 2);
  EXPECT_EQ(texts(changes), (Texts{"put b/2=2, put b/1=1", "put b/3=3"}));
  const std::vector<Change> one = co_await take(*single, 1);
  EXPECT_EQ(texts(one), (Texts{"put c=1"}));
  co_await watching->close();
  co_await single->close();
}

META_TEST(Watches, TellEverythingAboutAnEntry) {
  const std::unique_ptr<Watch> watching = co_await watch(place.store(), Range::all());
  const meta::Lease lease = co_await sure(place.store().grant(60_s));
  const Revision created = co_await put(place.store(), "a", "1");
  const Revision modified = co_await put(place.store(), "a", "2", lease.id);
  const std::vector<Change> changes = co_await take(*watching, 2);
  EXPECT_EQ(changes[1].events[0].entry, (Entry{"a", "2", created, modified, lease.id}));
  co_await watching->close();
}

Task<void> write_many(Store& store, std::string prefix, int count) {
  for (int i = 0; i < count; ++i) co_await put(store, prefix + std::to_string(i), "x");
}

META_TEST(Watches, SeeEveryCommitOfRacingClientsInTheOneOrder) {
  const std::unique_ptr<Watch> one = co_await watch(place.client(0), Range::all());
  const std::unique_ptr<Watch> other = co_await watch(place.client(1), Range::all());
  std::vector<Task<void>> writers;
  for (size_t i = 0; i < 4; ++i) {
    writers.push_back(write_many(place.client(i % 2), std::string(1, 'a' + i) + "/", 25));
  }
  const std::vector<Change> seen = co_await take(*one, 100);
  co_await task::when_all(std::move(writers));
  const std::vector<Change> also_seen = co_await take(*other, 100);
  EXPECT_EQ(seen, also_seen);
  for (size_t i = 1; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].revision, meta::next(seen[i - 1].revision));
  }
  co_await one->close();
  co_await other->close();
}

META_TEST(Watches, LargeHistoryArrivesWhole) {
  const Revision first = co_await put(place.store(), "0", "");
  for (int i = 1; i < 8; ++i) {
    Batch batch;
    for (int k = 0; k < 15; ++k) {
      batch.put(std::to_string(k), std::string(64_KiB, static_cast<char>('a' + i)));
    }
    co_await sure(place.store().commit(batch));
  }
  const std::unique_ptr<Watch> watching = co_await watch(place.store(), Range::all(), first);
  const std::vector<Change> changes = co_await take(*watching, 8);
  for (size_t i = 1; i < changes.size(); ++i) {
    EXPECT_EQ(changes[i].events.size(), 15U);
    for (const meta::Event& event : changes[i].events) {
      EXPECT_EQ(event.entry.value, std::string(64_KiB, static_cast<char>('a' + i)));
    }
  }
  co_await watching->close();
}

Task<std::string> next_outcome(Watch& watch, CancelToken token) {
  const Result<std::vector<Change>> next = co_await watch.next(token);
  co_return outcome(next);
}

META_TEST(Watches, CancellingLosesNothing) {
  const std::unique_ptr<Watch> watching = co_await watch(place.store(), Range::all());
  for (int i = 0; i < 5; ++i) {
    task::CancelSource source;
    Task<std::string> waiting = next_outcome(*watching, source.token());
    co_await conformance::hesitate(place.env());
    source.request();
    const std::string ended = co_await waiting;
    EXPECT_EQ(ended, "cancelled");
    co_await put(place.store(), "a", std::to_string(i));
    const std::vector<Change> changes = co_await take(*watching, 1);
    EXPECT_EQ(texts(changes), (Texts{"put a=" + std::to_string(i)}));
  }
  co_await watching->close();
}

META_TEST(Watches, OfForgottenHistoryAreToldAndGoOnByListing) {
  Store& store = place.store();
  const Revision first = co_await put(store, "a", "1");
  co_await put(store, "a", "2");
  co_await put(store, "b", "1");
  const Revision last = co_await put(store, "a", "3");
  co_await sure(store.compact(last));
  for (const Revision from : {first, last}) {
    Result<std::unique_ptr<Watch>> old = co_await store.watch(Range::all(), from);
    if (old) {
      for (int i = 0; i < 2; ++i) {
        const std::string told = co_await next_outcome(**old, {});
        EXPECT_EQ(told, "not_found");
      }
      co_await (*old)->close();
    } else {
      EXPECT_EQ(outcome(old), "not_found");
    }
  }
  const Page page = co_await sure(store.list({.range = Range::all()}));
  EXPECT_EQ(page.entries.size(), 2U);
  const std::unique_ptr<Watch> watching =
      co_await watch(store, Range::all(), meta::next(page.revision));
  co_await put(store, "a", "4");
  const std::vector<Change> changes = co_await take(*watching, 1);
  EXPECT_EQ(texts(changes), (Texts{"put a=4"}));
  co_await watching->close();
}

META_TEST(Watches, ThatKeepUpAreNotHurtByCompaction) {
  Store& store = place.store();
  const std::unique_ptr<Watch> watching = co_await watch(store, Range::prefix("a"));
  for (int i = 0; i < 5; ++i) {
    const Revision revision = co_await put(store, "a", std::to_string(i));
    const std::vector<Change> changes = co_await take(*watching, 1);
    EXPECT_EQ(texts(changes), (Texts{"put a=" + std::to_string(i)}));
    co_await sure(store.compact(revision));
  }
  co_await watching->close();
}

META_TEST(Watches, HistoryIsForgottenOnceAndPresentEntriesStay) {
  Store& store = place.store();
  const Revision first = co_await put(store, "a", "1");
  co_await put(store, "gone", "1");
  co_await remove(store, "gone");
  const Revision last = co_await put(store, "b", "1");
  co_await sure(store.compact(last));
  const Result<void> again = co_await store.compact(last);
  EXPECT_EQ(outcome(again), "not_found");
  const Result<void> future = co_await store.compact(meta::next(last));
  EXPECT_EQ(outcome(future), "invalid");
  const Result<Page> old = co_await store.list({.range = Range::all(), .at = first});
  EXPECT_EQ(outcome(old), "not_found");
  const Page now = co_await sure(store.list({.range = Range::all(), .at = last}));
  EXPECT_EQ(now.entries.size(), 2U);
  EXPECT_EQ(now.entries[0].created, first);
}

META_TEST(Watches, AreLimitedInNumber) {
  std::vector<std::unique_ptr<Watch>> all;
  for (size_t i = 0; i < meta::kWatchersMax; ++i) {
    all.push_back(co_await watch(place.store(), Range::one("a")));
  }
  const auto refused = co_await place.store().watch(Range::one("a"), {});
  EXPECT_EQ(outcome(refused), "limit");
  co_await put(place.store(), "a", "1");
  std::vector<Task<std::vector<Change>>> taking;
  for (const std::unique_ptr<Watch>& one : all) taking.push_back(take(*one, 1));
  const std::vector<std::vector<Change>> taken = co_await task::when_all(std::move(taking));
  for (const std::vector<Change>& changes : taken) EXPECT_EQ(texts(changes), (Texts{"put a=1"}));
  for (const std::unique_ptr<Watch>& one : all) co_await one->close();
  const std::unique_ptr<Watch> again = co_await watch(place.store(), Range::one("a"));
  co_await again->close();
}

}  // namespace
}  // namespace cairn::meta_tests
