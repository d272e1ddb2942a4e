// SPDX-License-Identifier: Apache-2.0
// How a fact about every kind of metadata store is written:
//
//   META_TEST(Keys, AbsentKeyIsNone) {
//     const auto found = co_await sure(place.store().get("a"));
//     EXPECT_FALSE(found.has_value());
//   }
//
// becomes Keys/memory.AbsentKeyIsNone, Keys/etcd.AbsentKeyIsNone and so on. The body is a coroutine
// `(Place& place)` on an empty store: EXPECT_* works, ASSERT_* does not.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "meta/place.h"
#include "meta/store.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::meta_tests {

using conformance::must;
using conformance::outcome;
using meta::Batch;
using meta::Change;
using meta::Committed;
using meta::Entry;
using meta::LeaseId;
using meta::ListOptions;
using meta::Page;
using meta::Range;
using meta::Revision;
using meta::Store;
using meta::Watch;
using task::CancelToken;
using task::Task;

using Places =
    testing::Types<Memory, Served, ServedReal, ServedTls, ServedTlsReal, Rocks, RocksUring, Etcd>;

using PlaceBody = Task<void> (*)(Place&);

template <class Kind, PlaceBody body>
Task<void> in_place(env::Env& env, conformance::Scene& scene) {
  const std::unique_ptr<Place> place = co_await Kind::open(env, scene);
  if (place == nullptr) co_return;
  co_await body(*place);
  co_await place->close();
}

// What a step gives without which the rest makes no sense.
template <class T>
Task<T> sure(Task<Result<T>> step, std::source_location where = std::source_location::current()) {
  Result<T> result = co_await step;
  if constexpr (std::is_void_v<T>) {
    must(std::move(result), where);
  } else {
    co_return must(std::move(result), where);
  }
}

// The words of the suite.
Task<Revision> put(Store& store, std::string key, std::string value, LeaseId lease = {});
Task<Revision> remove(Store& store, std::string key);
// "(none)" when it is not there.
Task<std::string> value_of(Store& store, std::string key);
// Every entry of a range, page by page.
Task<std::vector<Entry>> entries(Store& store, Range range, size_t limit = meta::kPageMax);
Task<std::string> keys(Store& store, Range range, size_t limit = meta::kPageMax);
Task<std::unique_ptr<Watch>> watch(Store& store, Range range, Revision from = {});
// The next `count` changes, and no more than those.
Task<std::vector<Change>> take(Watch& watch, size_t count);
// "put a=1" or "remove a", with a comma between the events of a change.
std::string text(const Change& change);
std::vector<std::string> texts(const std::vector<Change>& changes);

}  // namespace cairn::meta_tests

// A group of facts. In an anonymous namespace inside cairn::meta_tests, once per file.
// The name is being declared: it cannot have the parentheses that the check wants.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define META_TEST_SUITE(suite)           \
  template <class Kind>                  \
  class suite : public testing::Test {}; \
  TYPED_TEST_SUITE(suite, Places, conformance::WorldNames)
// NOLINTEND(bugprone-macro-parentheses)

#define META_TEST(suite, fact)                                                                  \
  Task<void> suite##_##fact(Place& place);                                                      \
  TYPED_TEST(suite, fact) { TypeParam::World::run({}, &in_place<TypeParam, &suite##_##fact>); } \
  Task<void> suite##_##fact([[maybe_unused]] Place& place)
