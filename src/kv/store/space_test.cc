// SPDX-License-Identifier: Apache-2.0
// What fills a store, and what gives space back: compaction, erasing, ends of keys; and damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "kv/store/check.h"
#include "kv/store/store_testing.h"
#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::kv::store {
namespace {

using task::Task;

std::string key_of(uint64_t n) { return "key" + std::to_string(n); }

// What a check of the closed store says.
Task<Result<CheckReport>> check_closed(env::Env& env, OnDisk& on, std::string disk) {
  const std::unique_ptr<drive::Drive> drive = co_await drive::must_open(env, disk, on.leaves);
  Result<CheckReport> report = co_await check(env, *drive, 30_s);
  co_await drive->close();
  on.leaves.close();
  co_return report;
}

// Puts until the store is full; how many were put.
Task<uint64_t> fill(Store& store, std::string value, std::optional<WallTime> expires = {}) {
  for (uint64_t n = 0;; ++n) {
    const Result<void> done = co_await put(store, key_of(n), value, expires);
    if (done) continue;
    EXPECT_EQ(done.error().code(), Errc::kNoSpace) << done.error().text();
    co_return n;
  }
}

Task<void> fill_up(env::Env& env, size_t size) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  const std::string value(size, 'x');
  const uint64_t count = co_await fill(*on.store, value);
  EXPECT_GT(count, 100u);
  EXPECT_EQ(on.store->size(), count);
  EXPECT_EQ(co_await value_of(*on.store, key_of(count - 1)), value);
  EXPECT_EQ(co_await value_of(*on.store, key_of(count)), "(none)");
  for (uint64_t n = 0; n < count / 2; ++n) {
    EXPECT_EQ(outcome(co_await erase(*on.store, key_of(n))), "ok");
  }
  for (uint64_t n = 0; n < count / 4; ++n) {
    EXPECT_EQ(outcome(co_await put(*on.store, key_of(n), value)), "ok");
  }
  co_await on.close();
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  EXPECT_EQ(on.store->size(), count - count / 2 + count / 4);
  EXPECT_EQ(co_await value_of(*on.store, key_of(count / 4)), "(none)");
  EXPECT_EQ(co_await value_of(*on.store, key_of(count - 1)), value);
  co_await on.close();
}

TEST(StoreSpace, AFullStoreRefusesPutsAndErasingGivesSpaceBack) {
  // Small values fill the key log, larger ones the value log.
  for (const size_t size : {1, 250, 1000}) {
    run_with_small_blocks([size](env::Env& env) { return fill_up(env, size); });
  }
}

Task<void> overwrite(env::Env& env, std::string disk, uint64_t rounds) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, disk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, disk)).has_value());
  const uint64_t count = (co_await fill(*on.store, std::string(600, 'x'))) * 9 / 10;
  for (uint64_t n = count; n < count * 10 / 9 + 1; ++n) {
    EXPECT_EQ(outcome(co_await erase(*on.store, key_of(n))), "ok");
  }
  std::vector<uint64_t> round_of(count);
  for (uint64_t i = 0; i < rounds * count; ++i) {
    const uint64_t n = env.rng().below(count);
    std::string value = std::to_string(++round_of[n]);
    value.resize(600, 'y');
    const Result<void> done = co_await put(*on.store, key_of(n), value);
    CO_ASSERT_TRUE(done.has_value());
  }
  for (uint64_t n = 0; n < count; ++n) {
    std::string value = std::to_string(round_of[n]);
    value.resize(600, 'y');
    EXPECT_EQ(co_await value_of(*on.store, key_of(n)),
              round_of[n] == 0 ? std::string(600, 'x') : value);
  }
  EXPECT_EQ(on.store->size(), count);
  const StoreStats stats = on.store->stats();
  EXPECT_GT(stats.values_moved, count);
  EXPECT_GT(stats.key_buckets_moved, count);
  EXPECT_EQ(stats.damaged, 0u);
  co_await on.close();
  const Result<CheckReport> report = co_await check_closed(env, on, disk);
  CO_ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->what, std::vector<std::string>());
  EXPECT_EQ(report->keys, count);
  EXPECT_EQ(report->live_bytes, stats.live_bytes);
}

TEST(StoreSpace, AStoreThatIsNinetyPercentFullIsOverwrittenAgainAndAgain) {
  run_with_small_blocks([](env::Env& env) { return overwrite(env, kSmallDisk, 10); });
  run_with_small_blocks(
      [](env::Env& env) { return overwrite(env, "file:d,size=8M,block=4096", 3); });
}

// A node whose store is nine tenths full and is overwritten at random, from one crash to the next.
// Each key has a number that grows with each acknowledged write.
struct CrashedStore {
  uint64_t count = 0;              // keys
  std::vector<uint64_t> newest;    // of each key: written, perhaps
  std::vector<uint64_t> promised;  // acknowledged
  uint64_t writes = 0;             // acknowledged, in all lives
  uint64_t lives = 0;
  std::string wrong;
};

std::string numbered(uint64_t number) {
  std::string value = std::to_string(number) + " ";
  value.resize(600, 'y');
  return value;
}

Task<void> fill_for_crashes(Store& store, CrashedStore& state) {
  const uint64_t full = co_await fill(store, numbered(0));
  const uint64_t count = full * 9 / 10;
  for (uint64_t n = count; n < full; ++n) {
    EXPECT_EQ(outcome(co_await erase(store, key_of(n))), "ok");
  }
  state.newest.assign(count, 0);
  state.promised.assign(count, 0);
  state.count = count;
}

Task<void> overwrite_some(Store& store, CrashedStore& state, uint64_t seed) {
  Rng rng(seed);
  while (state.wrong.empty()) {
    const uint64_t n = rng.below(state.count);
    const uint64_t number = ++state.newest[n];
    const Result<void> done = co_await put(store, key_of(n), numbered(number));
    if (!done) {
      if (done.error() != Errc::kCancelled) state.wrong = done.error().text();
      co_return;  // the crash
    }
    state.promised[n] = std::max(state.promised[n], number);
    ++state.writes;
  }
}

Task<void> live(env::Env& env, CrashedStore& state) {
  OnDisk on;
  if (state.count == 0) EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  if (state.count == 0) co_await fill_for_crashes(*on.store, state);
  for (uint64_t n = 0; n < state.count; ++n) {
    const std::string value = co_await value_of(*on.store, key_of(n));
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (value != numbered(number) || number < state.promised[n] || number > state.newest[n]) {
      state.wrong = key_of(n) + " is " + value.substr(0, 60);
    }
    state.newest[n] = state.promised[n] = number;
  }
  ++state.lives;
  std::vector<Task<void>> working;
  working.reserve(8);
  for (uint64_t i = 0; i < 8; ++i) {
    working.push_back(overwrite_some(*on.store, state, state.lives * 8 + i));
  }
  for (Task<void>& one : working) co_await one;
  co_await on.close();
}

TEST(StoreSpace, OverwritesGoOnAtNinetyPercentThroughCrashes) {
  CrashedStore state;
  sim::Cluster cluster({.disk = {.block_size = 512}});
  sim::Node& node = cluster.node("host");
  node.start([&state](env::Env& env) { return live(env, state); });
  for (uint64_t crash = 1; crash <= 12; ++crash) {
    const uint64_t lives = state.lives;
    const auto has_begun = [&] { return state.lives > lives || crash == 1; };
    ASSERT_TRUE(cluster.run_until(has_begun, 1000_s)) << state.wrong;
    // At another point of compaction each time; all crashes together are many laps of both logs.
    const uint64_t until = state.writes + 1500 + 137 * crash;
    const auto is_done = [&] { return state.writes >= until || !state.wrong.empty(); };
    ASSERT_TRUE(cluster.run_until(is_done, 10'000_s)) << crash;
    ASSERT_EQ(state.wrong, "") << crash;
    node.crash();
    node.restart();
  }
  EXPECT_GT(state.writes, 6 * state.count);
}

Task<void> let_expire(env::Env& env) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  const std::string value(500, 'x');
  const WallTime end{env.wall_now().ns + (100_s).ns};
  const uint64_t count = co_await fill(*on.store, value, end);
  EXPECT_TRUE((co_await task::sleep_for(env, 200_s)).has_value());
  // The first one is refused, and has the expired keys swept out.
  EXPECT_EQ((co_await put(*on.store, "new", value)).error().code(), Errc::kNoSpace);
  EXPECT_TRUE((co_await task::sleep_for(env, 20_s)).has_value());
  EXPECT_EQ(outcome(co_await put(*on.store, "new", value)), "ok");
  EXPECT_EQ(on.store->size(), 1u);
  EXPECT_EQ(on.store->stats().expired, count);
  EXPECT_EQ(co_await fill(*on.store, value), count - 1);
  co_await on.close();
}

TEST(StoreSpace, ExpiredKeysGiveTheirSpaceBack) { run_with_small_blocks(&let_expire); }

// Nothing in memory but the table grows with the keys.
Task<void> weigh(env::Env& env) {
  OnDisk on;
  const std::string disk = "file:d,size=32M,block=512";
  EXPECT_EQ(outcome(co_await on.make(env, disk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, disk)).has_value());
  const uint64_t count = co_await fill(*on.store, std::string(256, 'x'));
  const StoreStats stats = on.store->stats();
  EXPECT_LE(static_cast<double>(stats.table_bytes) / static_cast<double>(count), 0.35);
  co_await on.close();
}

TEST(StoreSpace, TheTableTakesAThirdOfAByteForEachKey) { run_with_small_blocks(&weigh); }

// Many changes at once, again and again through both logs.
Task<void> crowd(env::Env& env) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  const std::string value(1500, 'x');
  for (int round = 0; round < 20; ++round) {
    std::vector<Task<Result<void>>> putting;
    putting.reserve(600);
    for (uint64_t n = 0; n < 600; ++n) putting.push_back(put(*on.store, key_of(n), value));
    for (const Result<void>& done : co_await task::when_all(std::move(putting))) {
      EXPECT_EQ(outcome(done), "ok");
    }
  }
  EXPECT_EQ(on.store->size(), 600u);
  // Those that waited for each other were written together.
  EXPECT_LT(on.counts.writes, 3u * 20 * 600 / 4);
  co_await on.close();
}

TEST(StoreSpace, HundredsOfPutsAtOnceShareTheirWrites) { run_with_small_blocks(&crowd); }

Task<void> rot(env::Env& env, sim::Medium& disk) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  for (uint64_t n = 0; n < 100; ++n) {
    EXPECT_EQ(outcome(co_await put(*on.store, key_of(n), std::string(300, 'x'))), "ok");
  }
  co_await on.close();
  const Result<Layout> layout = plan_layout({.blocks = 8192, .block_size = 512}, 272);
  CO_ASSERT_TRUE(layout.has_value());
  disk.corrupt({layout->value_block * 512 + 10'000, 16});
  const Result<CheckReport> report = co_await check_closed(env, on, kSmallDisk);
  CO_ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->damaged, 1u);
  EXPECT_NE(report->what[0].find("the value of a key of segment"), std::string::npos);
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  int damaged = 0;
  for (uint64_t n = 0; n < 100; ++n) {
    const Result<std::optional<Entry>> entry = co_await on.store->get(key_of(n));
    if (entry) continue;
    EXPECT_EQ(entry.error().code(), Errc::kCorrupt);
    EXPECT_NE(entry.error().text().find("value log"), std::string::npos);
    ++damaged;
  }
  EXPECT_EQ(damaged, 1);
  // It can be overwritten, and the store goes on.
  for (uint64_t n = 0; n < 100; ++n) {
    EXPECT_EQ(outcome(co_await put(*on.store, key_of(n), "y")), "ok");
    EXPECT_EQ(co_await value_of(*on.store, key_of(n)), "y");
  }
  co_await on.close();
  disk.corrupt({layout->table_block * 512, 2 * layout->table_blocks * 512}, 200);
  EXPECT_EQ((co_await on.open(env, kSmallDisk)).error().code(), Errc::kCorrupt);
}

std::set<std::string> all_keys(const ScanPage& page) {
  return {page.keys.begin(), page.keys.end()};
}

// A record whose value rotted is told by its key, one whose key rotted is counted.
Task<void> scan_rotten(env::Env& env, sim::Medium& disk) {
  OnDisk on;
  EXPECT_EQ(outcome(co_await on.make(env, kSmallDisk)), "ok");
  CO_ASSERT_TRUE((co_await on.open(env, kSmallDisk)).has_value());
  std::set<std::string> all;
  for (uint64_t n = 0; n < 100; ++n) {
    const std::string key = key_of(n) + " is its key";
    EXPECT_EQ(outcome(co_await put(*on.store, key, key_of(n) + " is its value")), "ok");
    all.insert(key);
  }
  const auto rot = [&disk](const std::string& text) {
    std::string bytes(disk.size(), '\0');
    disk.peek(0, std::as_writable_bytes(std::span(bytes)));
    const size_t at = bytes.find(text);
    CHECK(at != std::string::npos);
    disk.corrupt({.offset = at, .length = text.size()});
  };
  rot(key_of(42) + " is its value");
  Result<ScanPage> page = co_await on.store->scan(0, 1000);
  CO_ASSERT_TRUE(page.has_value());
  EXPECT_EQ(all_keys(*page), all);
  EXPECT_EQ(page->unreadable, 0u);
  rot(key_of(43) + " is its key");
  page = co_await on.store->scan(0, 1000);
  CO_ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->next, 0u);
  all.erase(key_of(43) + " is its key");
  EXPECT_EQ(all_keys(*page), all);
  EXPECT_EQ(page->unreadable, 1u);
  EXPECT_EQ(on.store->stats().unlisted, 1u);
  // A whole bucket of the key log.
  const Result<Layout> layout = plan_layout({.blocks = 8192, .block_size = 512}, 272);
  CO_ASSERT_TRUE(layout.has_value());
  disk.corrupt({layout->key_block * 512, layout->key_buckets * 512}, 20000);
  page = co_await on.store->scan(0, 1000);
  CO_ASSERT_TRUE(page.has_value());
  EXPECT_GT(page->unreadable, 0u);
  co_await on.close();
}

TEST(StoreSpace, AScanGoesOnBehindADamagedRecord) {
  sim::Cluster cluster({.disk = {.block_size = 512}});
  sim::Medium& disk = cluster.node("host").disk("d");
  drive::run_in_sim(cluster, [&disk](env::Env& env) { return scan_rotten(env, disk); });
}

TEST(StoreSpace, BitRotIsFoundAndNamed) {
  sim::Cluster cluster({.disk = {.block_size = 512}});
  sim::Medium& disk = cluster.node("host").disk("d");
  drive::run_in_sim(cluster, [&disk](env::Env& env) { return rot(env, disk); });
}

}  // namespace
}  // namespace cairn::kv::store
