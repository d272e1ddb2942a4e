// SPDX-License-Identifier: Apache-2.0
#include "loadgen/key_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kv/memory_keyspace.h"
#include "task/deadline.h"
#include "testing/sim_test.h"

namespace cairn::loadgen {
namespace {

using task::Task;
using Kind = KeyOperation::Kind;

constexpr uint64_t kRecords = 1000;

std::map<Kind, int> kinds_of(std::string_view mix, int count) {
  KeyOperations operations(*find_key_mix(mix), {.records = kRecords, .seed = 7});
  std::map<Kind, int> kinds;
  for (int i = 0; i < count; ++i) ++kinds[operations.next().kind];
  return kinds;
}

TEST(KeyMix, OperationsHaveTheSharesOfTheirWorkload) {
  constexpr int kCount = 100'000;
  EXPECT_NEAR(kinds_of("a", kCount)[Kind::kUpdate], kCount / 2, 600);
  EXPECT_NEAR(kinds_of("b", kCount)[Kind::kUpdate], kCount / 20, 300);
  EXPECT_EQ(kinds_of("c", kCount)[Kind::kRead], kCount);
  EXPECT_NEAR(kinds_of("d", kCount)[Kind::kInsert], kCount / 20, 300);
  EXPECT_NEAR(kinds_of("f", kCount)[Kind::kChange], kCount / 2, 600);
  EXPECT_EQ(kinds_of("wr", kCount)[Kind::kUpdate], kCount);
  EXPECT_EQ(find_key_mix("e"), nullptr);
}

TEST(KeyMix, TheLatestRecordsAreReadMost) {
  KeyOperations operations(*find_key_mix("d"), {.records = kRecords, .seed = 7});
  uint64_t inserted = 0;
  uint64_t newest = 0;
  uint64_t reads = 0;
  for (int i = 0; i < 4000; ++i) {
    const KeyOperation operation = operations.next();
    if (operation.kind == Kind::kInsert) {
      EXPECT_EQ(operation.record, kRecords + inserted % (kRecords / 4));
      ++inserted;
      continue;
    }
    ++reads;
    const uint64_t last = inserted == 0 ? kRecords - 1 : kRecords + inserted - 1;
    EXPECT_LE(operation.record, last);
    if (operation.record == last) ++newest;
  }
  ASSERT_LT(inserted, kRecords / 4);
  // The first rank's share: 1 of the sum of 1/i^0.99 up to 1000, which is 7.73.
  EXPECT_NEAR(static_cast<double>(newest), static_cast<double>(reads) / 7.73, 80);
}

TEST(KeyMix, InsertsBeginAgainOnceThereIsAQuarterMore) {
  KeyOperations operations(*find_key_mix("d"), {.records = 40, .seed = 7});
  std::set<uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) seen.insert(operations.next().record);
  EXPECT_LT(*seen.rbegin(), 50U);
  EXPECT_EQ(*seen.rbegin(), 49U);
}

TEST(KeyMix, AnotherSeedDrawsOtherRecordsAndTheSameSeedTheSame) {
  const auto drawn = [](uint64_t seed) {
    KeyOperations operations(
        *find_key_mix("a"),
        {.distribution = YcsbDistribution::kUniform, .records = kRecords, .seed = seed});
    std::vector<uint64_t> records;
    for (int i = 0; i < 100; ++i) records.push_back(operations.next().record);
    return records;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(KeyMix, AValueSaysWhoseItIs) {
  EXPECT_EQ(key_of_record(5).size(), kRecordKeyBytes);
  EXPECT_NE(key_of_record(5), key_of_record(6));
  for (const size_t bytes : {8, 13, 256}) {
    EXPECT_EQ(value_of_record(5, bytes).size(), bytes);
    EXPECT_TRUE(is_value_of(5, value_of_record(5, bytes)));
    EXPECT_FALSE(is_value_of(6, value_of_record(5, bytes)));
  }
  EXPECT_FALSE(is_value_of(0, "short"));
}

// Each call takes a millisecond, but for one that takes a second.
class SlowTarget final : public KeyTarget {
 public:
  SlowTarget(env::Env& env, uint64_t slow_call) : env_(env), slow_call_(slow_call) {}
  Task<Result<std::optional<std::string>>> get(uint32_t, std::string_view key) override {
    const Duration time = ++calls_ == slow_call_ ? 1_s : 1_ms;
    const std::string name(key);
    const Result<void> slept = co_await task::sleep_for(env_, time, {});
    if (!slept) co_return fail(slept.error());
    const auto found = values_.find(name);
    if (found == values_.end()) co_return std::optional<std::string>();
    co_return found->second;
  }
  Task<Result<void>> put(uint32_t, std::string_view key, std::string_view value) override {
    values_[std::string(key)] = std::string(value);
    co_return Result<void>();
  }
  std::map<std::string, std::string>& values() { return values_; }

 private:
  env::Env& env_;
  const uint64_t slow_call_;
  uint64_t calls_ = 0;
  std::map<std::string, std::string> values_;
};

const KeyLoad kReads{.mix = *find_key_mix("c"), .records = 100, .depth = 1, .duration = 10_s};

SIM_TEST(KeyLoad, AStallCountsForAllThatWereDueMeanwhile) {
  SlowTarget target(env, 500);
  KeyLoad load = kReads;
  load.rate = 100;
  CO_ASSERT_TRUE((co_await fill_keys(env, target, load)).has_value());
  const Result<KeyLoadResult> result = co_await run_key_load(env, target, load);
  CO_ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->operations, 1000U);
  EXPECT_FALSE(result->error.has_value());
  EXPECT_NEAR(static_cast<double>(result->read_latency_ns.p50()), 1e6, 1e5);
  // A hundred were due in that second, and the last of them waited no longer than the first.
  EXPECT_GT(result->read_latency_ns.percentile(0.95), 400'000'000U);
}

SIM_TEST(KeyLoad, InClosedLoopOneFollowsTheOther) {
  SlowTarget target(env, 500);
  CO_ASSERT_TRUE((co_await fill_keys(env, target, kReads)).has_value());
  const Result<KeyLoadResult> result = co_await run_key_load(env, target, kReads);
  CO_ASSERT_TRUE(result.has_value());
  EXPECT_NEAR(static_cast<double>(result->operations), 9000, 10);
  EXPECT_NEAR(result->per_second(), 900, 2);
}

SIM_TEST(KeyLoad, AMissingOrForeignValueEndsIt) {
  SlowTarget target(env, 0);
  CO_ASSERT_TRUE((co_await fill_keys(env, target, kReads)).has_value());
  target.values()[key_of_record(3)] = value_of_record(4, 256);
  const Result<KeyLoadResult> result = co_await run_key_load(env, target, kReads);
  CO_ASSERT_TRUE(result.has_value());
  CO_ASSERT_TRUE(result->error.has_value());
  EXPECT_EQ(result->error->code(), Errc::kCorrupt);
  EXPECT_LT(result->operations, 9000U);
}

SIM_TEST(KeyLoad, AKeyspaceHasAllRecordsAndTakesAllWorkloads) {
  kv::MemoryKeyspace keyspace(env, {});
  KeyspaceTarget target(keyspace);
  KeyLoad load{.mix = {}, .records = 1000, .value_bytes = 100, .operations_max = 2000};
  CO_ASSERT_TRUE((co_await fill_keys(env, target, load)).has_value());
  EXPECT_EQ(keyspace.size(), 1000U);
  for (const KeyMix& mix : key_mixes()) {
    load.mix = mix;
    const Result<KeyLoadResult> result = co_await run_key_load(env, target, load);
    CO_ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->operations, 2000U);
    EXPECT_FALSE(result->error.has_value());
  }
  EXPECT_GT(keyspace.size(), 1050U);
}

SIM_TEST(KeyLoad, ALoadThatMakesNoSenseIsRefused) {
  SlowTarget target(env, 0);
  KeyLoad load = kReads;
  load.records = 2;
  EXPECT_EQ((co_await run_key_load(env, target, load)).error().code(), Errc::kInvalid);
  load = kReads;
  load.depth = 0;
  EXPECT_EQ((co_await run_key_load(env, target, load)).error().code(), Errc::kInvalid);
  load = kReads;
  load.value_bytes = 7;
  EXPECT_EQ((co_await fill_keys(env, target, load)).error().code(), Errc::kInvalid);
}

}  // namespace
}  // namespace cairn::loadgen
