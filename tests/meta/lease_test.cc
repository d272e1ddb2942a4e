// SPDX-License-Identifier: Apache-2.0
// Leases: keys that go when nobody cares for them any more.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meta/suite.h"
#include "task/deadline.h"

namespace cairn::meta_tests {
namespace {

META_TEST_SUITE(Leases);

using Texts = std::vector<std::string>;

META_TEST(Leases, EndByThemselvesAndTakeTheirKeysAlong) {
  Store& store = place.store();
  const std::unique_ptr<Watch> watching = co_await watch(place.client(1), Range::all());
  const Time begin = place.env().now();
  const meta::Lease lease = co_await sure(store.grant(1_s));
  EXPECT_GE(lease.ttl, 1_s);
  Batch batch;
  batch.put("b", "1", lease.id).put("a", "1", lease.id).put("c", "1");
  co_await sure(store.commit(batch));
  const std::vector<Change> changes = co_await take(*watching, 2);
  EXPECT_EQ(texts(changes), (Texts{"put b=1, put a=1, put c=1", "remove a, remove b"}));
  EXPECT_GE(place.env().now() - begin, 1_s);
  const std::string left = co_await keys(store, Range::all());
  EXPECT_EQ(left, "c");
  const Result<Duration> late = co_await store.keep_alive(lease.id);
  EXPECT_EQ(outcome(late), "not_found");
  const Result<void> revoked = co_await store.revoke(lease.id);
  EXPECT_EQ(outcome(revoked), "not_found");
  const Result<Committed> dead = co_await store.commit(Batch().put("d", "1", lease.id));
  EXPECT_EQ(outcome(dead), "not_found");
  co_await watching->close();
}

META_TEST(Leases, LastWhileTheyAreKeptAlive) {
  Store& store = place.store();
  const meta::Lease kept = co_await sure(store.grant(2_s));
  const meta::Lease other = co_await sure(store.grant(1_s));
  co_await put(store, "kept", "1", kept.id);
  co_await put(store, "other", "1", other.id);
  const std::unique_ptr<Watch> watching = co_await watch(store, Range::one("other"));
  // What ends first shows that time passes, without anybody counting it.
  Task<std::vector<Change>> gone = take(*watching, 1);
  const Time begin = place.env().now();
  while (!gone.is_done() || place.env().now() - begin < 3_s) {
    const Duration ttl = co_await sure(store.keep_alive(kept.id));
    EXPECT_GE(ttl, 2_s);
    must(co_await task::sleep_for(place.env(), 100_ms));
  }
  const std::vector<Change> changes = co_await gone;
  EXPECT_EQ(texts(changes), (Texts{"remove other"}));
  const std::string value = co_await value_of(store, "kept");
  EXPECT_EQ(value, "1");
  co_await watching->close();
}

META_TEST(Leases, RevokedEndAtOnceInOneCommit) {
  Store& store = place.store();
  const meta::Lease lease = co_await sure(store.grant(600_s));
  for (const char* key : {"c", "a", "b"}) co_await put(store, key, "1", lease.id);
  const Revision before = co_await put(store, "stays", "1");
  const std::unique_ptr<Watch> watching = co_await watch(place.client(1), Range::all());
  co_await sure(store.revoke(lease.id));
  const std::vector<Change> changes = co_await take(*watching, 1);
  EXPECT_EQ(texts(changes), (Texts{"remove a, remove b, remove c"}));
  EXPECT_EQ(changes[0].revision, meta::next(before));
  const std::string left = co_await keys(store, Range::all());
  EXPECT_EQ(left, "stays");
  co_await watching->close();
}

META_TEST(Leases, WithoutKeysMakeNoRevision) {
  Store& store = place.store();
  const Revision before = co_await put(store, "a", "1");
  const meta::Lease lease = co_await sure(store.grant(600_s));
  co_await sure(store.revoke(lease.id));
  const Page page = co_await sure(store.list({.range = Range::all()}));
  EXPECT_EQ(page.revision, before);
}

META_TEST(Leases, HoldAKeyUntilItIsPutAgainOrRemoved) {
  Store& store = place.store();
  const meta::Lease first = co_await sure(store.grant(600_s));
  const meta::Lease second = co_await sure(store.grant(600_s));
  EXPECT_NE(first.id, second.id);
  for (const char* key : {"freed", "moved", "again", "held"}) {
    co_await put(store, key, "1", first.id);
  }
  co_await put(store, "freed", "2");
  co_await put(store, "moved", "2", second.id);
  co_await remove(store, "again");
  co_await put(store, "again", "2");
  const std::optional<Entry> moved = co_await sure(store.get("moved"));
  EXPECT_EQ(moved->lease, second.id);
  co_await sure(store.revoke(first.id));
  const std::string left = co_await keys(store, Range::all());
  EXPECT_EQ(left, "again freed moved");
  co_await sure(store.revoke(second.id));
  const std::string rest = co_await keys(store, Range::all());
  EXPECT_EQ(rest, "again freed");
}

META_TEST(Leases, ThatNobodyGrantedAreNotFound) {
  Store& store = place.store();
  const LeaseId nobodys(123'456);
  const Result<Duration> kept = co_await store.keep_alive(nobodys);
  EXPECT_EQ(outcome(kept), "not_found");
  const Result<void> revoked = co_await store.revoke(nobodys);
  EXPECT_EQ(outcome(revoked), "not_found");
  const Result<Committed> put_with = co_await store.commit(Batch().put("a", "1", nobodys));
  EXPECT_EQ(outcome(put_with), "not_found");
  const std::string value = co_await value_of(store, "a");
  EXPECT_EQ(value, "(none)");
}

META_TEST(Leases, LastFromASecondToADay) {
  for (const Duration ttl : {0_s, Duration{-1}, 999_ms, 86'401_s, Duration::max()}) {
    const auto refused = co_await place.store().grant(ttl);
    EXPECT_EQ(outcome(refused), "invalid") << text(ttl);
  }
  const meta::Lease odd = co_await sure(place.store().grant(1500_ms));
  EXPECT_GE(odd.ttl, 1500_ms);
}

}  // namespace
}  // namespace cairn::meta_tests
