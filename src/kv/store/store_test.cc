// SPDX-License-Identifier: Apache-2.0
#include "kv/store/store.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/units.h"
#include "kv/store/store_testing.h"
#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::kv::store {
namespace {

using task::Task;

Task<void> keep_values(env::Env& env) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  EXPECT_EQ(outcome(co_await put(*on.store, "a", "one")), "ok");
  EXPECT_EQ(outcome(co_await put(*on.store, "b", "")), "ok");
  EXPECT_EQ(outcome(co_await put(*on.store, "a", "two")), "ok");
  EXPECT_EQ(co_await value_of(*on.store, "a"), "two");
  EXPECT_EQ(co_await value_of(*on.store, "b"), "");
  EXPECT_EQ(co_await value_of(*on.store, "c"), "(none)");
  EXPECT_EQ(on.store->size(), 2u);
  EXPECT_EQ(outcome(co_await erase(*on.store, "a")), "ok");
  EXPECT_EQ(co_await value_of(*on.store, "a"), "(none)");
  EXPECT_EQ(on.store->size(), 1u);
  co_await on.close();
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  EXPECT_EQ(co_await value_of(*on.store, "a"), "(none)");
  EXPECT_EQ(co_await value_of(*on.store, "b"), "");
  EXPECT_EQ(on.store->size(), 1u);
  co_await on.close();
}

TEST(Store, KeepsValuesOverAnOpening) { run_with_small_blocks(&keep_values); }

Task<void> count_accesses(env::Env& env, const char* disk) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, disk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, disk)).has_value());
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(outcome(co_await put(*on.store, "key" + std::to_string(i), "value")), "ok");
  }
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::to_string(i);
    on.counts = {};
    EXPECT_EQ(co_await value_of(*on.store, key), "value");
    EXPECT_EQ(on.counts.reads, 2u);
    EXPECT_EQ(on.counts.writes, 0u);
    on.counts = {};
    EXPECT_EQ(outcome(co_await put(*on.store, key, std::string(500, 'x'))), "ok");
    EXPECT_EQ(on.counts.reads, 1u);
    EXPECT_EQ(on.counts.writes, 2u);
    on.counts = {};
    EXPECT_EQ(outcome(co_await erase(*on.store, key)), "ok");
    EXPECT_EQ(on.counts.reads, 1u);
    EXPECT_EQ(on.counts.writes, 1u);
    EXPECT_EQ(outcome(co_await put(*on.store, key, "value")), "ok");
  }
  co_await on.close();
}

TEST(Store, GetPutAndDelCostTwoThreeAndTwoAccesses) {
  for (const char* disk : {kSmallDisk, "file:d,size=32M"}) {
    run_with_small_blocks([disk](env::Env& env) { return count_accesses(env, disk); });
  }
}

Task<void> keep_large(env::Env& env) {
  OnDisk on;
  const std::string disk = "file:d,size=96M";
  EXPECT_EQ(outcome(co_await on.make(env, disk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, disk)).has_value());
  const std::string key(kKeyBytesMax, 'k');
  const std::string value(kValueBytesMax, 'v');
  EXPECT_EQ(outcome(co_await put(*on.store, key, value)), "ok");
  EXPECT_EQ(outcome(co_await put(*on.store, "half", value.substr(5'000'000))), "ok");
  EXPECT_EQ(outcome(co_await put(*on.store, key.substr(1), "")), "ok");
  co_await on.close();
  CO_ASSERT_TRUE((co_await on.open(env, disk)).has_value());
  EXPECT_TRUE((co_await value_of(*on.store, key)) == value);
  EXPECT_TRUE((co_await value_of(*on.store, "half")) == value.substr(5'000'000));
  EXPECT_EQ(co_await value_of(*on.store, key.substr(1)), "");
  const Result<void> long_key = co_await put(*on.store, key + "k", "");
  EXPECT_EQ(long_key.error().code(), Errc::kInvalid);
  const Result<void> long_value = co_await put(*on.store, "a", value + "v");
  EXPECT_EQ(long_value.error().code(), Errc::kInvalid);
  const Result<void> empty = co_await put(*on.store, "", "v");
  EXPECT_EQ(empty.error().code(), Errc::kInvalid);
  co_await on.close();
}

TEST(Store, KeepsTheLargestKeysAndValues) { run_with_small_blocks(&keep_large); }

Task<void> expire(env::Env& env) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  const WallTime soon{env.wall_now().ns + (5_s).ns};
  EXPECT_EQ(outcome(co_await put(*on.store, "a", "one", soon)), "ok");
  EXPECT_EQ(co_await value_of(*on.store, "a"), "one");
  const Result<std::optional<Meta>> meta = co_await on.store->look("a");
  CO_ASSERT_TRUE(meta && *meta && (*meta)->expires);
  EXPECT_GE((*meta)->expires->ns, soon.ns);
  EXPECT_LT((*meta)->expires->ns, soon.ns + 1'000'000);
  EXPECT_EQ((*meta)->size, 3u);
  co_await on.close();
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  EXPECT_EQ(co_await value_of(*on.store, "a"), "one");
  EXPECT_TRUE((co_await task::sleep_for(env, 6_s)).has_value());
  EXPECT_EQ(co_await value_of(*on.store, "a"), "(none)");
  AppendChange change("x");
  const std::string_view key = "a";
  EXPECT_TRUE((co_await on.store->transact({&key, 1}, change)).has_value());
  EXPECT_EQ(co_await value_of(*on.store, "a"), "x");
  EXPECT_EQ(on.store->size(), 1u);
  co_await on.close();
}

TEST(Store, KeysExpireAlsoOverAnOpening) { run_with_small_blocks(&expire); }

Task<void> change_many(env::Env& env) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back("key" + std::to_string(i));
  EXPECT_EQ(outcome(co_await put_all(*on.store, keys, "v")), "ok");
  std::vector<Task<Result<void>>> changing;
  AppendChange change("+");
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  for (int i = 0; i < 50; ++i) changing.push_back(on.store->transact(views, change));
  for (const Result<void>& done : co_await task::when_all(std::move(changing))) {
    EXPECT_EQ(outcome(done), "ok");
  }
  for (const std::string& key : keys) {
    EXPECT_EQ(co_await value_of(*on.store, key), "v" + std::string(50, '+'));
  }
  co_await on.close();
}

TEST(Store, ChangesOfSeveralKeysFollowEachOther) { run_with_small_blocks(&change_many); }

Task<void> scan_all(env::Env& env) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  std::set<std::string> expected;
  EXPECT_EQ((co_await on.store->random_key())->has_value(), false);
  for (int i = 0; i < 300; ++i) {
    expected.insert("key" + std::to_string(i));
    EXPECT_EQ(outcome(co_await put(*on.store, "key" + std::to_string(i), "v")), "ok");
  }
  std::set<std::string> seen;
  uint64_t cursor = 0;
  do {
    const Result<ScanPage> page = co_await on.store->scan(cursor, 10);
    CO_ASSERT_TRUE(page.has_value());
    seen.insert(page->keys.begin(), page->keys.end());
    cursor = page->next;
  } while (cursor != 0);
  EXPECT_EQ(seen, expected);
  const Result<std::optional<std::string>> random = co_await on.store->random_key();
  CO_ASSERT_TRUE(random && *random);
  EXPECT_TRUE(expected.contains(**random));
  EXPECT_EQ(outcome(co_await on.store->clear()), "ok");
  EXPECT_EQ(on.store->size(), 0u);
  EXPECT_EQ(co_await value_of(*on.store, "key7"), "(none)");
  EXPECT_EQ(outcome(co_await put(*on.store, "after", "v")), "ok");
  co_await on.close();
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  EXPECT_EQ(on.store->size(), 1u);
  EXPECT_EQ(co_await value_of(*on.store, "key7"), "(none)");
  EXPECT_EQ(co_await value_of(*on.store, "after"), "v");
  co_await on.close();
}

TEST(Store, ScansAllKeysAndClears) { run_with_small_blocks(&scan_all); }

Task<void> format_again(env::Env& env) {
  OnDisk on;
  EXPECT_EQ((co_await on.open(env, kSmallDisk)).error().code(), Errc::kNotFound);
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  EXPECT_EQ((co_await on.make(env, kSmallDisk)).error().code(), Errc::kExists);
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  EXPECT_EQ(outcome(co_await put(*on.store, "a", "one")), "ok");
  co_await on.close();
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk, {.may_format = true})), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  EXPECT_EQ(co_await value_of(*on.store, "a"), "(none)");
  co_await on.close();
  auto drive = co_await drive::must_open(env, "file:other,size=4M,block=512", on.leaves);
  co_await drive::write_bytes(*drive, 4000, std::vector<std::byte>(512, std::byte{7}));
  EXPECT_EQ((co_await format(env, *drive, {})).error().code(), Errc::kInvalid);
  EXPECT_EQ(outcome(co_await format(env, *drive, {.may_format = true})), "ok");
  co_await drive->close();
  drive = nullptr;
  on.leaves.close();
}

TEST(Store, IsMadeOnABlankDriveUnlessToldOtherwise) { run_with_small_blocks(&format_again); }

}  // namespace
}  // namespace cairn::kv::store
