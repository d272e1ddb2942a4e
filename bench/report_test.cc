// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cairn::bench {
namespace {

Report small_report() {
  Report report("runtime");
  Measurement stream{"stream", "uring", "bytes/s", {3e9, 1e9, 2e9}};
  Histogram latency;
  for (uint64_t us = 1; us <= 1000; ++us) latency.record(us * 1000);
  stream.add_latency(latency);
  report.add(std::move(stream));
  report.add({"task_immediate", "", "ns", {12.5}});
  report.add_ratio("uring_stream_vs_raw", 1.25);
  report.skip("epoll", "it was not asked for");
  return report;
}

TEST(Median, IsTheMiddleOrTheMeanOfBoth) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Report, JsonHasTheFieldsThatReadersRelyOn) {
  const auto json = nlohmann::json::parse(small_report().json().dump());
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["benchmark"], "runtime");
  EXPECT_FALSE(json["commit"].get<std::string>().empty());
  EXPECT_GT(json["machine"]["cpus_online"], 0);
  EXPECT_GT(json["machine"]["memory_bytes"], 0);
  EXPECT_FALSE(json["machine"]["kernel"].get<std::string>().empty());
  ASSERT_EQ(json["results"].size(), 2U);
  EXPECT_EQ(json["ratios"]["uring_stream_vs_raw"], 1.25);
  EXPECT_EQ(json["skipped"]["epoll"], "it was not asked for");
}

TEST(Report, ResultIsTheMedianWithItsSamplesAndPercentiles) {
  const auto json = nlohmann::json::parse(small_report().json().dump());
  const auto& stream = json["results"][0];
  EXPECT_EQ(stream["name"], "stream");
  EXPECT_EQ(stream["variant"], "uring");
  EXPECT_EQ(stream["unit"], "bytes/s");
  EXPECT_EQ(stream["value"], 2e9);
  EXPECT_EQ(stream["samples"], (std::vector<double>{3e9, 1e9, 2e9}));
  EXPECT_NEAR(stream["p50_us"].get<double>(), 500, 10);
  EXPECT_NEAR(stream["p99_us"].get<double>(), 990, 16);
  EXPECT_FALSE(json["results"][1].contains("variant"));
}

TEST(Report, EmptyReportStillHasEveryList) {
  const auto json = nlohmann::json::parse(Report("runtime").json().dump());
  EXPECT_TRUE(json["results"].is_array());
  EXPECT_TRUE(json["ratios"].is_object());
  EXPECT_TRUE(json["simulated_ratios"].is_array());
  EXPECT_TRUE(json["skipped"].is_object());
}

TEST(Report, TableIsAligned) {
  const std::string table = small_report().table();
  EXPECT_TRUE(table.starts_with("stream          uring  1.863 GiB/s  p50_us ")) << table;
  EXPECT_NE(table.find("\ntask_immediate             12.5 ns\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\nuring_stream_vs_raw 1.250\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\nepoll skipped: it was not asked for\n"), std::string::npos) << table;
}

TEST(Report, WhatAModelComputedIsMarked) {
  Report report = small_report();
  report.add({.name = "fig6",
              .variant = "PT",
              .unit = "IO/s",
              .samples = {5},
              .extras = {{"p99_us", 7}},
              .is_simulated = true});
  report.add_simulated_ratio("leap_vs_pt", 0.5);
  const auto json = nlohmann::json::parse(report.json().dump());
  EXPECT_FALSE(json["results"][0].contains("simulated"));
  EXPECT_EQ(json["results"][2]["simulated"], true);
  EXPECT_EQ(json["ratios"]["leap_vs_pt"], 0.5);
  EXPECT_EQ(json["simulated_ratios"], (std::vector<std::string>{"leap_vs_pt"}));
  const std::string table = report.table();
  EXPECT_NE(table.find("5 IO/s  simulated  p99_us 7\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\nleap_vs_pt 0.500 simulated\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\nuring_stream_vs_raw 1.250\n"), std::string::npos) << table;
}

TEST(Report, FindsByNameAndVariant) {
  const Report report = small_report();
  ASSERT_NE(report.find("stream", "uring"), nullptr);
  EXPECT_EQ(report.find("stream", "uring")->value(), 2e9);
  EXPECT_EQ(report.find("stream", "epoll"), nullptr);
}

}  // namespace
}  // namespace cairn::bench
