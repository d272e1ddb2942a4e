// SPDX-License-Identifier: Apache-2.0
// Keys and their order: what is put is read back, one by one and by the page.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "meta/suite.h"

namespace cairn::meta_tests {
namespace {

META_TEST_SUITE(Keys);

META_TEST(Keys, AbsentKeyIsNone) {
  const std::optional<Entry> found = co_await sure(place.store().get("a"));
  EXPECT_FALSE(found.has_value());
}

META_TEST(Keys, PutIsReadBackByEveryClient) {
  const Revision revision = co_await put(place.store(), "a", "1");
  const std::optional<Entry> found = co_await sure(place.client(1).get("a"));
  EXPECT_EQ(found, (Entry{"a", "1", revision, revision, LeaseId()}));
  EXPECT_GT(revision, Revision(1));
}

META_TEST(Keys, OverwritingKeepsTheBeginning) {
  const Revision first = co_await put(place.store(), "a", "1");
  const Revision second = co_await put(place.store(), "a", "2");
  EXPECT_GT(second, first);
  const std::optional<Entry> found = co_await sure(place.store().get("a"));
  EXPECT_EQ(found, (Entry{"a", "2", first, second, LeaseId()}));
}

META_TEST(Keys, RemovedKeyBeginsANewLife) {
  const Revision first = co_await put(place.store(), "a", "1");
  co_await remove(place.store(), "a");
  const std::string gone = co_await value_of(place.store(), "a");
  EXPECT_EQ(gone, "(none)");
  const Revision again = co_await put(place.store(), "a", "2");
  const std::optional<Entry> found = co_await sure(place.store().get("a"));
  EXPECT_EQ(found->created, again);
  EXPECT_GT(again, first);
}

META_TEST(Keys, AnyBytesAreAKeyAndAValue) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  const std::vector<std::string> odd = {
      std::string(1, '\0'), std::string(2, '\0'), "\xff", "\xff\xff", "a b", "\"\\/\n", every};
  for (const std::string& key : odd) co_await put(place.store(), key, every + key);
  for (const std::string& key : odd) {
    const std::string value = co_await value_of(place.store(), key);
    EXPECT_EQ(value, every + key);
  }
  co_await put(place.store(), "empty", "");
  const std::string empty = co_await value_of(place.store(), "empty");
  EXPECT_EQ(empty, "");
}

META_TEST(Keys, OrderIsThatOfBytes) {
  for (const char* key : {"b", "a", "ab", "B", "\xc3\xa4", "a\x01"}) {
    co_await put(place.store(), key, "");
  }
  const std::string all = co_await keys(place.store(), Range::all());
  EXPECT_EQ(all, "B a a\x01 ab b \xc3\xa4");
}

META_TEST(Keys, PrefixTakesWhatBeginsWithItAndNothingElse) {
  for (const char* key : {"a", "a/", "a/1", "a/2", "a0", "b", "\xff", "\xff\xff", "\xff\xff/1"}) {
    co_await put(place.store(), key, "");
  }
  const std::string below = co_await keys(place.store(), Range::prefix("a/"));
  EXPECT_EQ(below, "a/ a/1 a/2");
  const std::string high = co_await keys(place.store(), Range::prefix("\xff"));
  EXPECT_EQ(high, "\xff \xff\xff \xff\xff/1");
  const std::string higher = co_await keys(place.store(), Range::prefix("\xff\xff"));
  EXPECT_EQ(higher, "\xff\xff \xff\xff/1");
  const std::vector<Entry> all = co_await entries(place.store(), Range::prefix(""));
  EXPECT_EQ(all.size(), 9U);
  const std::string one = co_await keys(place.store(), Range::one("a/"));
  EXPECT_EQ(one, "a/");
  const std::string from = co_await keys(place.store(), Range{.first = "a0", .end = ""});
  EXPECT_EQ(from, "a0 b \xff \xff\xff \xff\xff/1");
  const std::string none = co_await keys(place.store(), Range::prefix("zz"));
  EXPECT_EQ(none, "");
}

META_TEST(Keys, PagesOfAnySizeGiveTheWhole) {
  for (int i = 0; i < 10; ++i) co_await put(place.store(), "k" + std::to_string(i), "");
  for (const size_t limit : {1, 3, 5, 10, 11, 256}) {
    const std::string all = co_await keys(place.store(), Range::prefix("k"), limit);
    EXPECT_EQ(all, "k0 k1 k2 k3 k4 k5 k6 k7 k8 k9") << limit;
  }
  const Page exact = co_await sure(place.store().list({.range = Range::all(), .limit = 10}));
  EXPECT_FALSE(exact.more);
  const Page shorter = co_await sure(place.store().list({.range = Range::all(), .limit = 9}));
  EXPECT_TRUE(shorter.more);
}

META_TEST(Keys, PagesAreOfOneRevision) {
  for (const char* key : {"a", "b", "c"}) co_await put(place.store(), key, "old");
  const Page first = co_await sure(place.store().list({.range = Range::all(), .limit = 1}));
  co_await put(place.client(1), "b", "new");
  co_await remove(place.client(1), "c");
  co_await put(place.client(1), "d", "new");
  const Page second = co_await sure(place.store().list(
      {.range = Range::all().behind(first.entries[0].key), .at = first.revision}));
  EXPECT_EQ(second.revision, first.revision);
  EXPECT_EQ(second.entries.size(), 2U);
  for (const Entry& entry : second.entries) EXPECT_EQ(entry.value, "old");
  const std::string now = co_await keys(place.store(), Range::all());
  EXPECT_EQ(now, "a b d");
}

META_TEST(Keys, LargeValuesComeInSeveralPages) {
  const std::string large(meta::kValueMax, 'x');
  for (int i = 0; i < 40; ++i) co_await put(place.store(), std::to_string(i), large);
  const std::vector<Entry> all = co_await entries(place.store(), Range::all());
  EXPECT_EQ(all.size(), 40U);
  for (const Entry& entry : all) EXPECT_EQ(entry.value, large);
}

META_TEST(Keys, RevisionThatIsNotThereYetIsInvalid) {
  const Revision last = co_await put(place.store(), "a", "1");
  const Result<Page> page =
      co_await place.store().list({.range = Range::all(), .at = meta::next(last)});
  EXPECT_EQ(outcome(page), "invalid");
}

META_TEST(Keys, WhatBreaksALimitIsInvalid) {
  Store& store = place.store();
  const std::string longest(meta::kKeyMax, 'k');
  co_await put(store, longest, "1");
  const std::string found = co_await keys(store, Range::all().behind("a"));
  EXPECT_EQ(found, longest);
  const std::vector<Entry> behind = co_await entries(store, Range::all().behind(longest));
  EXPECT_TRUE(behind.empty());
  const Result<std::optional<Entry>> no_key = co_await store.get("");
  EXPECT_EQ(outcome(no_key), "invalid");
  const Result<std::optional<Entry>> long_key = co_await store.get(longest + "k");
  EXPECT_EQ(outcome(long_key), "invalid");
  for (const size_t limit : {size_t{0}, meta::kPageMax + 1}) {
    const Result<Page> page = co_await store.list({.range = Range::all(), .limit = limit});
    EXPECT_EQ(outcome(page), "invalid");
  }
  const Result<Page> backwards = co_await store.list({.range = {.first = "b", .end = "a"}});
  EXPECT_EQ(outcome(backwards), "invalid");
}

META_TEST(Keys, TokenRequestedBeforeMeansNothingHappens) {
  task::CancelSource source;
  source.request();
  const Result<std::optional<Entry>> got = co_await place.store().get("a", source.token());
  EXPECT_EQ(outcome(got), "cancelled");
  Batch batch;
  batch.put("a", "1");
  const Result<Committed> committed = co_await place.store().commit(batch, source.token());
  EXPECT_EQ(outcome(committed), "cancelled");
  const std::string value = co_await value_of(place.store(), "a");
  EXPECT_EQ(value, "(none)");
}

}  // namespace
}  // namespace cairn::meta_tests
