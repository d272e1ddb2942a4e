// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/rocksdb/ycsb.h"
#include "bench/rocksdb/ycsb_record.h"
#include "bench/temporary_folder.h"
#include "loadgen/ycsb_keys.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kRecords = 1000;

std::vector<int> times_drawn(YcsbDistribution distribution, int draws) {
  const YcsbKeys keys(distribution, kRecords);
  Rng rng(7);
  std::vector<int> times(kRecords);
  for (int i = 0; i < draws; ++i) ++times.at(keys.draw(rng));
  return times;
}

TEST(YcsbKeys, UniformDrawsAllAlike) {
  const std::vector<int> times = times_drawn(YcsbDistribution::kUniform, 100 * kRecords);
  EXPECT_GT(*std::ranges::min_element(times), 50);
  EXPECT_LT(*std::ranges::max_element(times), 150);
}

TEST(YcsbKeys, ZipfianDrawsTheMostPopularAsOftenAsItsShare) {
  std::vector<int> times = times_drawn(YcsbDistribution::kZipfian, 100 * kRecords);
  const auto first = std::ranges::max_element(times);
  EXPECT_NE(first, times.begin());  // scattered: popular ones are not the first
  // The sum of 1/i^0.99 up to 1000 is 7.73: one draw in that many, half as many for the second.
  EXPECT_NEAR(*first, 100'000 / 7.73, 500);
  *first = 0;
  EXPECT_NEAR(*std::ranges::max_element(times), 100'000 / 7.73 / 1.986, 500);
}

TEST(YcsbRecord, IsKnownByItsNumberAndVersion) {
  const std::string value = ycsb_value(3, 8);
  EXPECT_EQ(value.size(), 1000U);
  EXPECT_EQ(ycsb_version(3, value), 8U);
  EXPECT_EQ(ycsb_key(3).size(), 20U);
  EXPECT_NE(ycsb_key(3), ycsb_key(4));
}

TEST(YcsbRecord, AnythingElseIsNoticed) {
  std::string value = ycsb_value(3, 8);
  EXPECT_FALSE(ycsb_version(4, value));
  EXPECT_FALSE(ycsb_version(3, ""));
  EXPECT_FALSE(ycsb_version(3, value.substr(1)));
  for (const size_t at : {size_t{0}, size_t{8}, value.size() - 1}) {
    value[at] = static_cast<char>(value[at] ^ 1);
    EXPECT_FALSE(ycsb_version(3, value)) << at;
    value[at] = static_cast<char>(value[at] ^ 1);
  }
}

class Ycsb : public testing::Test {
 protected:
  void SetUp() override {
    Result<TemporaryFolder> folder = TemporaryFolder::make(testing::TempDir());
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    // The folder of temporary files may be memory, which older kernels do not read directly.
    place_ = {.folder = folder_->file(""), .cache_bytes = 64_KiB, .direct = false};
  }

  std::optional<TemporaryFolder> folder_;
  YcsbPlace place_;
};

TEST_F(Ycsb, CountsWhatItDidAndChecksWhatItRead) {
  const auto database = YcsbDatabase::make(place_, kRecords);
  ASSERT_TRUE(database);
  EXPECT_EQ((*database)->records(), kRecords);
  for (const auto distribution : {YcsbDistribution::kUniform, YcsbDistribution::kZipfian}) {
    const auto reads = (*database)->run(
        {.updates = 0, .distribution = distribution, .threads = 3, .operations = 1000});
    ASSERT_TRUE(reads);
    EXPECT_EQ(reads->read_ns.count(), 1000U);
    EXPECT_EQ(reads->update_ns.count(), 0U);
    const auto mixed = (*database)->run(
        {.updates = 0.5, .distribution = distribution, .threads = 7, .operations = 3001});
    ASSERT_TRUE(mixed);
    EXPECT_EQ(mixed->read_ns.count() + mixed->update_ns.count(), 3001U);
    EXPECT_NEAR(static_cast<double>(mixed->update_ns.count()), 1500, 200);
  }
}

TEST_F(Ycsb, RunsForSomeTimeInstead) {
  const auto database = YcsbDatabase::make(place_, kRecords);
  ASSERT_TRUE(database);
  const auto figures = (*database)->run({.threads = 2, .operations = 0, .seconds = 1e-6});
  ASSERT_TRUE(figures);
  EXPECT_GE(figures->read_ns.count(), 2U);
  EXPECT_GT(figures->per_second(), 0);
}

TEST_F(Ycsb, AKeptDatabaseHasTheUpdatesOfBefore) {
  ASSERT_TRUE(YcsbDatabase::make(place_, kRecords));
  for (int opening = 0; opening < 3; ++opening) {
    const auto again = YcsbDatabase::open(place_);
    ASSERT_TRUE(again);
    EXPECT_EQ((*again)->records(), kRecords);
    EXPECT_TRUE((*again)->run({.updates = 0.5, .threads = 4, .operations = 2000}));
  }
}

TEST_F(Ycsb, WhatWasNeverFilledIsNotKept) {
  const auto none = YcsbDatabase::open(place_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), Errc::kNotFound);
}

TEST_F(Ycsb, DamagedTablesAreNoticed) {
  ASSERT_TRUE(YcsbDatabase::make(place_, kRecords));
  int damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_->file("ycsb"))) {
    if (entry.path().extension() != ".sst" || entry.file_size() < 100'000) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    for (int at = 1000; at < 90'000; at += 4096) {
      file.seekp(at);
      file.write("damage", 6);
    }
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  const auto again = YcsbDatabase::open(place_);
  ASSERT_TRUE(again);
  EXPECT_FALSE((*again)->run({.threads = 4, .operations = 2000}));
}

TEST_F(Ycsb, TheReportHasALineForEachWorkloadAndNumberOfThreads) {
  YcsbOptions options;
  options.place = place_;
  options.records = kRecords;
  options.operations = 200;
  options.threads = {1, 2};
  const Result<Report> report = bench_ycsb(options);
  ASSERT_TRUE(report);
  EXPECT_NE(report->find("load", ""), nullptr);
  for (const std::string& workload : ycsb_workloads()) {
    for (const char* threads : {"1 thread", "2 threads"}) {
      const Measurement* line = report->find("workload_" + workload, threads);
      ASSERT_NE(line, nullptr) << workload;
      EXPECT_GT(line->value(), 0);
    }
  }
  options.keep = true;
  options.workloads = {"c"};
  const Result<Report> kept = bench_ycsb(options);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->find("load", ""), nullptr);
  EXPECT_EQ(kept->find("workload_a", "1 thread"), nullptr);
}

}  // namespace
}  // namespace cairn::bench
