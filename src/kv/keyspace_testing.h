// SPDX-License-Identifier: Apache-2.0
// What every Keyspace is held to. A place is a type that runs a body with an empty keyspace in a
// world of its own, simulated or real, and has ended when run() returns:
//
//   struct InMemory {
//     static void run(KeyspaceBody body);
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(InMemory, KeyspaceFacts, InMemory);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "env/env.h"
#include "kv/keyspace.h"
#include "task/deadline.h"
#include "task/task.h"

namespace cairn::kv {

using KeyspaceBody = task::Task<void> (*)(env::Env&, Keyspace&);
using Needs = Change::Needs;

// A change that is written down before: edits of keys, in their order.
class Edits final : public Change {
 public:
  explicit Edits(std::vector<Edit> edits, Needs needs = Needs::kNothing)
      : Change(needs), edits_(std::move(edits)) {}

  Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
    ++calls;
    seen.assign(now.begin(), now.end());
    for (const Edit& edit : edits) EXPECT_EQ(edit.kind, Edit::Kind::kKeep);
    EXPECT_EQ(edits.size(), edits_.size());
    if (failure) return fail(*failure);
    std::ranges::move(edits_, edits.begin());
    return {};
  }

  std::optional<Error> failure;
  int calls = 0;
  std::vector<std::optional<Entry>> seen;

 private:
  std::vector<Edit> edits_;
};

inline Edit put_of(std::string value, std::optional<WallTime> expires = std::nullopt) {
  return {.kind = Edit::Kind::kPut, .value = std::move(value), .expires = expires};
}
inline Edit erasure() { return {.kind = Edit::Kind::kErase, .value = {}, .expires = {}}; }

inline task::Task<Result<void>> change_one(Keyspace& keys, std::string key, Edit edit) {
  const std::string_view its = key;
  std::vector<Edit> edits;
  edits.push_back(std::move(edit));
  Edits change(std::move(edits));
  const Result<void> done = co_await keys.transact(std::span(&its, 1), change);
  co_return done;
}
inline task::Task<Result<void>> put(Keyspace& keys, std::string key, std::string value,
                                    std::optional<WallTime> expires = std::nullopt) {
  Edit edit = put_of(std::move(value), expires);
  const Result<void> done = co_await change_one(keys, std::move(key), std::move(edit));
  co_return done;
}
// The value; "(none)" of a key that is not there, "(failed)" after an error.
inline task::Task<std::string> value_of(Keyspace& keys, std::string key) {
  const Result<std::optional<Entry>> found = co_await keys.get(key);
  if (!found) co_return std::string("(failed)");
  if (!*found) co_return std::string("(none)");
  EXPECT_EQ((**found).meta.size, (**found).value.size());
  co_return (**found).value;
}
// 0 of a key that is not there.
inline task::Task<uint64_t> version_of(Keyspace& keys, std::string key) {
  const Result<std::optional<Meta>> found = co_await keys.look(key);
  EXPECT_TRUE(found.has_value());
  if (!found || !*found) co_return 0;
  co_return (**found).version;
}
inline std::string outcome(const Result<void>& result) {
  return result ? "ok" : std::string(name(result.error().code()));
}
// In whole milliseconds: a keyspace may round others up.
inline WallTime after(env::Env& env, Duration duration) {
  const auto end = env.wall_now().ns + duration.ns;
  return {end - end % (1_ms).ns};
}

inline task::Task<void> expect_put(Keyspace& keys, std::string key, std::string value,
                                   std::optional<WallTime> expires = std::nullopt) {
  const Result<void> done = co_await put(keys, key, std::move(value), expires);
  EXPECT_EQ(outcome(done), "ok") << key;
}
inline task::Task<void> expect_refused(Keyspace& keys, std::string key, std::string value) {
  const Result<void> done = co_await put(keys, std::move(key), std::move(value));
  EXPECT_EQ(outcome(done), "invalid");
}
inline task::Task<void> expect_erased(Keyspace& keys, std::string key) {
  const Result<void> done = co_await change_one(keys, key, erasure());
  EXPECT_EQ(outcome(done), "ok") << key;
}
inline task::Task<void> expect_value(Keyspace& keys, std::string key, std::string expected) {
  const std::string value = co_await value_of(keys, key);
  EXPECT_EQ(value, expected) << key;
}
inline task::Task<void> expect_transact(Keyspace& keys, std::span<const std::string_view> names,
                                        Change& change, std::string expected) {
  const Result<void> done = co_await keys.transact(names, change);
  EXPECT_EQ(outcome(done), expected);
}

inline task::Task<void> keys_come_and_go(env::Env&, Keyspace& keys) {
  co_await expect_value(keys, "a", "(none)");
  EXPECT_EQ(keys.size(), 0U);
  co_await expect_put(keys, "a", "1");
  co_await expect_put(keys, "b", "");
  co_await expect_value(keys, "a", "1");
  co_await expect_value(keys, "b", "");
  EXPECT_EQ(keys.size(), 2U);
  co_await expect_put(keys, "a", "longer than before");
  co_await expect_value(keys, "a", "longer than before");
  co_await expect_erased(keys, "a");
  co_await expect_erased(keys, "a");
  co_await expect_value(keys, "a", "(none)");
  co_await expect_value(keys, "b", "");
  EXPECT_EQ(keys.size(), 1U);
}

inline task::Task<void> sizes_are_limited(env::Env&, Keyspace& keys) {
  const std::string long_key(kKeyBytesMax, 'k');
  const std::string long_value(kValueBytesMax, 'v');
  co_await expect_put(keys, long_key, "v");
  co_await expect_value(keys, long_key, "v");
  co_await expect_put(keys, std::string("\0\r\n\xff", 4), long_value);
  const std::string read = co_await value_of(keys, std::string("\0\r\n\xff", 4));
  EXPECT_TRUE(read == long_value);
  co_await expect_refused(keys, long_key + "k", "v");
  co_await expect_refused(keys, "", "v");
  co_await expect_refused(keys, "a", long_value + "v");
  co_await expect_value(keys, "", "(failed)");
  const Result<std::optional<Meta>> looked = co_await keys.look("");
  EXPECT_FALSE(looked.has_value());
  co_await expect_value(keys, "a", "(none)");
  EXPECT_EQ(keys.size(), 2U);
}

inline task::Task<void> versions_never_come_back(env::Env& env, Keyspace& keys) {
  std::set<uint64_t> versions;
  for (int i = 0; i < 20; ++i) {
    co_await expect_put(keys, "a", "same");
    const uint64_t version = co_await version_of(keys, "a");
    EXPECT_NE(version, 0U);
    EXPECT_TRUE(versions.insert(version).second) << version;
    const uint64_t again = co_await version_of(keys, "a");
    EXPECT_EQ(again, version) << "nothing has changed";
    if (i % 3 == 0) {
      co_await expect_erased(keys, "a");
    }
    const WallTime end = after(env, 60_s);
    co_await expect_put(keys, "a", "same", end);
    const uint64_t newer = co_await version_of(keys, "a");
    EXPECT_TRUE(versions.insert(newer).second);
  }
}

inline task::Task<void> changes_see_what_they_need(env::Env& env, Keyspace& keys) {
  const WallTime end = after(env, 60_s);
  co_await expect_put(keys, "a", "12345", end);
  const std::vector<std::string_view> both = {"none", "a"};
  for (const Needs needs : {Needs::kNothing, Needs::kMeta, Needs::kValues}) {
    Edits change(std::vector<Edit>(2), needs);
    co_await expect_transact(keys, both, change, "ok");
    EXPECT_EQ(change.calls, 1);
    EXPECT_EQ(change.seen.size(), 2U);
    EXPECT_FALSE(change.seen[0].has_value());
    EXPECT_EQ(change.seen[1].has_value(), needs != Needs::kNothing);
    if (!change.seen[1]) continue;
    EXPECT_EQ(change.seen[1]->meta.size, 5U);
    const uint64_t version = co_await version_of(keys, "a");
    EXPECT_EQ(change.seen[1]->meta.version, version);
    EXPECT_EQ(change.seen[1]->meta.expires, end);
    EXPECT_EQ(change.seen[1]->value, needs == Needs::kValues ? "12345" : "");
  }
}

inline task::Task<void> changes_are_all_or_nothing(env::Env&, Keyspace& keys) {
  co_await expect_put(keys, "a", "1");
  const std::vector<std::string_view> three = {"a", "b", "c"};
  std::vector<Edit> edits;
  edits.push_back(erasure());
  edits.push_back(put_of("2"));
  edits.push_back(put_of("3"));
  Edits change(std::move(edits));
  change.failure = Error(Errc::kMismatch, "no");
  co_await expect_transact(keys, three, change, "mismatch");
  co_await expect_value(keys, "a", "1");
  co_await expect_value(keys, "b", "(none)");
  change.failure.reset();
  co_await expect_transact(keys, three, change, "ok");
  co_await expect_value(keys, "a", "(none)");
  co_await expect_value(keys, "b", "2");
  co_await expect_value(keys, "c", "3");

  std::vector<Edit> with_bad;
  with_bad.push_back(put_of("new"));
  with_bad.push_back(put_of(std::string(kValueBytesMax + 1, 'x')));
  with_bad.push_back(erasure());
  Edits bad(std::move(with_bad));
  co_await expect_transact(keys, three, bad, "invalid");
  co_await expect_value(keys, "a", "(none)");
  co_await expect_value(keys, "c", "3");
}

inline task::Task<void> keys_end(env::Env& env, Keyspace& keys) {
  const WallTime soon = after(env, 500_ms);
  const WallTime later = after(env, 3600_s);
  co_await expect_put(keys, "soon", "1", soon);
  co_await expect_put(keys, "later", "2", later);
  co_await expect_put(keys, "kept", "3", soon);
  co_await expect_put(keys, "kept", "4");
  co_await expect_value(keys, "soon", "1");
  const Result<std::optional<Meta>> meta = co_await keys.look("soon");
  EXPECT_TRUE(meta && *meta && (**meta).expires == soon);
  const Result<void> slept = co_await task::sleep_for(env, 600_ms);
  EXPECT_TRUE(slept.has_value());
  const uint64_t gone = co_await version_of(keys, "soon");
  EXPECT_EQ(gone, 0U);
  co_await expect_value(keys, "soon", "(none)");
  co_await expect_value(keys, "later", "2");
  co_await expect_value(keys, "kept", "4");
  Edits change(std::vector<Edit>(1), Needs::kValues);
  const std::string_view key = "soon";
  co_await expect_transact(keys, std::span(&key, 1), change, "ok");
  EXPECT_FALSE(change.seen[0].has_value());
  co_await expect_put(keys, "soon", "again");
  co_await expect_value(keys, "soon", "again");
}

inline task::Task<std::multiset<std::string>> scan_all(Keyspace& keys, size_t count) {
  std::multiset<std::string> found;
  uint64_t cursor = 0;
  do {
    const Result<ScanPage> page = co_await keys.scan(cursor, count);
    EXPECT_TRUE(page.has_value());
    if (!page) break;
    found.insert(page->keys.begin(), page->keys.end());
    cursor = page->next;
  } while (cursor != 0);
  co_return found;
}
inline task::Task<void> expect_empty(Keyspace& keys) {
  const std::multiset<std::string> found = co_await scan_all(keys, 10);
  EXPECT_TRUE(found.empty());
}

inline task::Task<void> scans_find_what_stays(env::Env&, Keyspace& keys) {
  co_await expect_empty(keys);
  for (int i = 0; i < 300; ++i) {
    co_await expect_put(keys, "stays" + std::to_string(i), "v");
  }
  for (const size_t count : {size_t{1}, size_t{7}, size_t{1000}}) {
    const std::multiset<std::string> found = co_await scan_all(keys, count);
    EXPECT_EQ(std::set(found.begin(), found.end()).size(), 300U) << count;
  }
  // Others come and go meanwhile, and the keyspace becomes larger than it was.
  std::set<std::string> found;
  uint64_t cursor = 0;
  int turn = 0;
  do {
    const Result<ScanPage> page = co_await keys.scan(cursor, 10);
    EXPECT_TRUE(page.has_value());
    if (!page) co_return;
    found.insert(page->keys.begin(), page->keys.end());
    cursor = page->next;
    for (int i = 0; i < 20; ++i, ++turn) {
      const std::string mine = "goes" + std::to_string(turn % 400);
      Edit edit = turn % 800 < 400 ? put_of("v") : erasure();
      const Result<void> done = co_await change_one(keys, mine, std::move(edit));
      EXPECT_EQ(outcome(done), "ok");
    }
  } while (cursor != 0 && turn < 1'000'000);
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(found.contains("stays" + std::to_string(i))) << i;
  }
}

inline task::Task<void> random_keys_are_there(env::Env&, Keyspace& keys) {
  const Result<std::optional<std::string>> none = co_await keys.random_key();
  EXPECT_TRUE(none && !*none);
  std::set<std::string> drawn;
  for (int i = 0; i < 8; ++i) {
    co_await expect_put(keys, std::to_string(i), "v");
  }
  for (int i = 0; i < 400; ++i) {
    const Result<std::optional<std::string>> key = co_await keys.random_key();
    EXPECT_TRUE(key && *key);
    if (!key || !*key) co_return;
    co_await expect_value(keys, **key, "v");
    drawn.insert(**key);
  }
  EXPECT_GT(drawn.size(), 1U) << "not always the same";
}

inline task::Task<void> clear_erases_all(env::Env& env, Keyspace& keys) {
  for (int i = 0; i < 100; ++i) {
    const WallTime end = after(env, 1_s);
    co_await expect_put(keys, std::to_string(i), "v", end);
  }
  const uint64_t before = co_await version_of(keys, "7");
  const Result<void> cleared = co_await keys.clear();
  EXPECT_EQ(outcome(cleared), "ok");
  EXPECT_EQ(keys.size(), 0U);
  co_await expect_value(keys, "7", "(none)");
  co_await expect_empty(keys);
  co_await expect_put(keys, "7", "new");
  const uint64_t newer = co_await version_of(keys, "7");
  EXPECT_NE(newer, before);
  const Result<void> slept = co_await task::sleep_for(env, 3_s);
  EXPECT_TRUE(slept.has_value());
  co_await expect_value(keys, "7", "new");
}

// Adds one to each of its keys.
class Increment final : public Change {
 public:
  Increment() : Change(Needs::kValues) {}
  Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
    for (size_t i = 0; i < now.size(); ++i) {
      const int value = now[i] ? std::stoi(now[i]->value) : 0;
      edits[i] = put_of(std::to_string(value + 1));
    }
    return {};
  }
};

inline task::Task<void> increment(Keyspace& keys, std::string one, std::string other, int times) {
  const std::vector<std::string_view> both = {one, other};
  for (int i = 0; i < times; ++i) {
    Increment change;
    co_await expect_transact(keys, both, change, "ok");
  }
}

inline task::Task<void> nobody_changes_keys_meanwhile(env::Env&, Keyspace& keys) {
  std::vector<task::Task<void>> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(increment(keys, "x", "y", 20));
    all.push_back(increment(keys, "y", "z", 20));
    all.push_back(increment(keys, "z", "x", 20));
  }
  for (task::Task<void>& each : all) co_await each;
  co_await expect_value(keys, "x", "200");
  co_await expect_value(keys, "y", "200");
  co_await expect_value(keys, "z", "200");
}

inline task::Task<void> it_is_a_map(env::Env& env, Keyspace& keys) {
  Rng& rng = env.rng();
  std::map<std::string, std::string> model;
  for (int i = 0; i < 3000; ++i) {
    std::set<std::string> drawn;
    for (uint64_t n = rng.between(1, 4); n > 0; --n) drawn.insert(std::to_string(rng.below(200)));
    const std::vector<std::string_view> names(drawn.begin(), drawn.end());
    std::vector<Edit> edits(names.size());
    for (Edit& edit : edits) {
      const uint64_t choice = rng.below(3);
      if (choice == 0) edit = put_of(std::string(rng.below(2000), static_cast<char>('a' + i % 26)));
      if (choice == 1) edit = erasure();
    }
    for (size_t k = 0; k < names.size(); ++k) {
      if (edits[k].kind == Edit::Kind::kPut) model[std::string(names[k])] = edits[k].value;
      if (edits[k].kind == Edit::Kind::kErase) model.erase(std::string(names[k]));
    }
    Edits change(std::move(edits));
    co_await expect_transact(keys, names, change, "ok");
    const std::string one = std::to_string(rng.below(200));
    const auto known = model.find(one);
    co_await expect_value(keys, one, known == model.end() ? "(none)" : known->second);
    EXPECT_EQ(keys.size(), model.size());
  }
  const std::multiset<std::string> found = co_await scan_all(keys, 10);
  EXPECT_EQ(std::set(found.begin(), found.end()).size(), model.size());
}

template <class Place>
class KeyspaceFacts : public ::testing::Test {};
TYPED_TEST_SUITE_P(KeyspaceFacts);

TYPED_TEST_P(KeyspaceFacts, KeysComeAndGo) { TypeParam::run(&keys_come_and_go); }
TYPED_TEST_P(KeyspaceFacts, SizesAreLimited) { TypeParam::run(&sizes_are_limited); }
TYPED_TEST_P(KeyspaceFacts, VersionsNeverComeBack) { TypeParam::run(&versions_never_come_back); }
TYPED_TEST_P(KeyspaceFacts, ChangesSeeWhatTheyNeed) { TypeParam::run(&changes_see_what_they_need); }
TYPED_TEST_P(KeyspaceFacts, ChangesAreAllOrNothing) { TypeParam::run(&changes_are_all_or_nothing); }
TYPED_TEST_P(KeyspaceFacts, KeysEnd) { TypeParam::run(&keys_end); }
TYPED_TEST_P(KeyspaceFacts, ScansFindWhatStays) { TypeParam::run(&scans_find_what_stays); }
TYPED_TEST_P(KeyspaceFacts, RandomKeysAreThere) { TypeParam::run(&random_keys_are_there); }
TYPED_TEST_P(KeyspaceFacts, ClearErasesAll) { TypeParam::run(&clear_erases_all); }
TYPED_TEST_P(KeyspaceFacts, NobodyChangesKeysMeanwhile) {
  TypeParam::run(&nobody_changes_keys_meanwhile);
}
TYPED_TEST_P(KeyspaceFacts, ItIsAMap) { TypeParam::run(&it_is_a_map); }

REGISTER_TYPED_TEST_SUITE_P(KeyspaceFacts, KeysComeAndGo, SizesAreLimited, VersionsNeverComeBack,
                            ChangesSeeWhatTheyNeed, ChangesAreAllOrNothing, KeysEnd,
                            ScansFindWhatStays, RandomKeysAreThere, ClearErasesAll,
                            NobodyChangesKeysMeanwhile, ItIsAMap);

}  // namespace cairn::kv
